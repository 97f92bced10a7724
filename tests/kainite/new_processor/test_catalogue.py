"""The list of the examples: each is there, in a checkout and in a wheel, and a language has one for each dialect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kainite.new_processor.catalogue import EXAMPLES, JSON_LINES, MARKERS, SAMPLES, find, folder, languages
from kainite.settings import ChildProtocol

ROOT = Path(__file__).parents[3]


def test_every_file_of_an_example_is_there() -> None:
    named = {(one.language, file) for one in EXAMPLES for file in (one.source, *one.beside)}

    assert [(language, file) for language, file in named if not (folder() / language / file).is_file()] == []
    assert (folder() / SAMPLES).is_file()


def test_a_language_has_at_most_one_example_in_a_dialect() -> None:
    pairs = [(one.language, one.dialect) for one in EXAMPLES]

    assert len(set(pairs)) == len(pairs)
    assert languages() == tuple(dict.fromkeys(language for language, _ in pairs))


@pytest.mark.parametrize(
    ("language", "dialect", "source"),
    [
        ("python", None, "json_lines.py"),
        ("python", MARKERS, "markers.py"),
        ("c", None, "markers.c"),
        ("c", JSON_LINES, None),
        ("cobol", None, None),
    ],
)
def test_without_a_dialect_the_first_example_is_found(
    language: str, dialect: ChildProtocol | None, source: str | None
) -> None:
    found = find(language, dialect)

    assert (found.source if found else None) == source


def test_a_wheel_carries_the_examples(tmp_path: Path) -> None:
    """Builds a wheel as users' wheels are built, and lists the examples from a folder with the wheel's content only."""
    built, unpacked = tmp_path / "built", tmp_path / "unpacked"
    subprocess.run(
        [
            *("uv", "build", "--wheel", "--offline", "--no-build-isolation", "--quiet"),
            *("--python", sys.executable, "-o", str(built), str(ROOT)),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        check=True, timeout=120,
    )  # fmt: skip
    [wheel] = built.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(unpacked)], check=True, timeout=60)

    subprocess.run(
        [sys.executable, "-m", "kainite", "new-processor", "python", "orders"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(unpacked)}, check=True, timeout=60, capture_output=True,
    )  # fmt: skip

    shipped = unpacked / "kainite" / "examples"
    origin = ROOT / "record_processors" / "examples"
    assert (tmp_path / "orders" / "json_lines.py").read_bytes() == (origin / "python" / "json_lines.py").read_bytes()
    assert {path.relative_to(shipped) for path in shipped.rglob("*") if path.is_file()} == {
        path.relative_to(origin) for path in tracked(origin)
    }


def tracked(origin: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", "."], cwd=origin, capture_output=True, check=True, timeout=30)
    return [origin / name for name in listed.stdout.decode().split("\0") if name]
