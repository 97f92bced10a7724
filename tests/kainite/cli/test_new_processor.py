"""``kainite new-processor``: what it writes, that it implements the protocol, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main
from kainite.new_processor.catalogue import EXAMPLES, JSON_LINES, MARKERS, Example, folder, languages
from kainite.new_processor.starter import PROPERTIES, README, starter
from kainite.settings import examine, load


def new_processor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["new-processor", *map(str, arguments)])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.language}-{one.dialect}")
def test_the_example_comes_with_settings_and_says_what_to_do_next(example: Example, tmp_path: Path) -> None:
    into = tmp_path / "my orders"

    ended = new_processor("--dialect", example.dialect, example.language, into)

    assert ended.exit_code == 0, ended.output
    assert (into / example.source).read_bytes() == (folder() / example.language / example.source).read_bytes()
    assert {path.name for path in into.iterdir()} == set(starter(example, "x"))
    settings = load(into / PROPERTIES)
    assert settings.child.protocol is example.dialect
    assert settings.child.command == tuple(example.run.split())
    assert settings.leases.application == "kainite-my-orders"
    found = examine(into / PROPERTIES)
    assert (found.problems, found.unknown, found.ignored) == ((), (), ())
    for command in example.prepare:
        assert command in ended.output
        assert f"\n{command}\n" in (into / README).read_text()


def test_what_is_written_keeps_the_protocol(tmp_path: Path) -> None:
    into = tmp_path / "orders"
    assert new_processor("perl", into).exit_code == 0

    ended = subprocess.run(
        [sys.executable, "-m", "kainite", "conform", "-p", PROPERTIES, "--records", "samples.jsonl", "--case",
         "one-record", "--case", "odd-text", "--case", "shard-ended", "--strict", "--slow", "60", "--timeout", "60"],
        cwd=into, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_without_a_dialect_a_language_gets_its_first_one(tmp_path: Path) -> None:
    assert new_processor("python", tmp_path / "p").exit_code == 0
    assert new_processor("c", tmp_path / "c").exit_code == 0

    assert load(tmp_path / "p" / PROPERTIES).child.protocol is JSON_LINES
    assert load(tmp_path / "c" / PROPERTIES).child.protocol is MARKERS


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    ended = new_processor("perl", tmp_path)

    assert ended.exit_code == 1
    assert ended.output.count("\n") == 1
    assert "is not empty (mine.txt)" in ended.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert new_processor("perl", tmp_path).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a LANGUAGE and a DIR"),
        (("perl",), "name a LANGUAGE and a DIR"),
        (("cobol", "x"), "'cobol' is not one of"),
        (("--dialect", "json-lines", "c", "x"), "no c in json-lines"),
        (("--json", "perl", "x"), "--json goes with --list"),
    ],
)
def test_wrong_usage_is_said_and_writes_nothing(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = new_processor(*arguments)

    assert ended.exit_code == 2
    assert words in ended.output
    assert list(tmp_path.iterdir()) == []


def test_the_list_names_them_all() -> None:
    table = new_processor("--list").output
    document = json.loads(new_processor("--list", "--json").output)

    assert all(language in table for language in languages())
    assert [(one["language"], one["dialect"]) for one in document] == [(e.language, e.dialect) for e in EXAMPLES]
