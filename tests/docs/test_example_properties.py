"""properties/: `kainite run --check` has nothing to say to the files as they are, nor to what they leave out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kainite.cli.main import main
from kainite.settings import examine

FOLDER = Path(__file__).parents[2] / "properties"
FILES = sorted(FOLDER.glob("*.properties"))
ENVIRONMENTS = ("aws", "local", "localstack")
CHOICE = re.compile(r"^#([A-Za-z][\w.]*) = (.*)$")
"""A key that a file leaves out; prose has a space behind its ``#``."""

NOTES = {"retrievalMode", "AwsCredentialsProvider", "idleTimeBetweenReadsInMillis"}
"""Lines that tell readers who come from Java's daemon what differs."""


def keys(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.partition(" = ")[0].removeprefix("#") for line in lines if CHOICE.match(line) or line[:1].isalpha()]


def groups_of_choices(path: Path) -> Iterator[dict[str, str]]:
    """Choices that stand together; one that is left out twice is an alternative, and a group of its own."""
    group: dict[str, str] = {}
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        found = CHOICE.match(line)
        if found:
            group[found[1]] = found[2]
        elif group:
            yield group
            group = {}


def check(path: Path, *options: str) -> Any:
    command = ["run", "-p", str(path), "--check", "--json", "--executable-name", f"{sys.executable} -m x", *options]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_accepted_without_a_warning(path: Path) -> None:
    answer = check(path)
    assert (answer["warnings"], answer["unknown"], answer["ignored"]) == ([], [], [])
    assert {note.partition(":")[0] for note in answer["notes"]} <= NOTES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_file_leaves_out_would_be_accepted_too(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    groups = list(groups_of_choices(path))
    assert groups
    for number, group in enumerate(groups):
        without = re.sub(rf"^({'|'.join(map(re.escape, group))}) = .*$", "", text, flags=re.M)
        changed = tmp_path / f"{number}.properties"
        changed.write_text(without + "".join(f"\n{key} = {value}" for key, value in group.items()), encoding="utf-8")
        found = examine(changed)
        assert (found.problems, found.unknown, found.ignored) == ((), (), ()), group
        assert not [line for line in found.warnings if not line.startswith("streamArn")], group


def test_there_is_one_for_each_environment_and_each_names_what_every_environment_decides() -> None:
    assert tuple(path.stem for path in FILES) == ENVIRONMENTS
    decided = set.intersection(*(set(keys(path)) for path in FILES))
    assert decided >= {
        "applicationName", "streamName", "regionName", "executableName", "initialPositionInStream", "childProtocol",
        "failoverTimeMillis", "idleTimeBetweenReadsInMillis", "metricsLevel", "metricsPort", "timeoutInSeconds",
        "unitsOfWork", "uowOrder", "target", "onUowFailure", "applyMaster", "extractorName", "extractorMode",
    }  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_key_stands_in_a_file_twice_unless_as_an_alternative(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    active = [line.partition(" = ")[0] for line in lines if line[:1].isalpha()]
    assert len(active) == len(set(active))
