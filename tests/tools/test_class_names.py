"""A class's name stands for one class in the whole project: whoever reads it, or searches for it, finds one thing.

The names are read off the sources, private classes and classes within functions too. Tests may reuse names.
"""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("daemon", "spark_apply", "demo", "record_processors", "localstack", "tools")


def test_no_two_classes_have_one_name() -> None:
    assert shared_names(programs()) == []


def test_two_classes_of_one_name_are_found_with_their_files(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("class Twice: ...\nclass Once: ...\n")
    other.write_text("def make():\n    class Twice: ...\n")

    assert shared_names([one, other]) == [f"Twice: {one}, {other}"]


def programs() -> list[Path]:
    """Returns the sources that git knows, relative to the repository."""
    patterns = [f"{folder}/*.py" for folder in FOLDERS]
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def shared_names(paths: list[Path]) -> list[str]:
    """Returns each name that more than one class has, with the files of these classes."""
    return [
        f"{name}: {', '.join(map(str, files))}"
        for name, files in sorted(files_by_name(paths).items())
        if len(files) > 1
    ]


def files_by_name(paths: list[Path]) -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        for name in class_names((ROOT / path).read_text(encoding="utf-8")):
            found[name].append(path)
    return found


def class_names(program: str) -> Iterator[str]:
    return (node.name for node in ast.walk(ast.parse(program)) if isinstance(node, ast.ClassDef))
