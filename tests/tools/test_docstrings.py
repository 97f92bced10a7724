"""The summary of a function's docstring begins with a verb in the third person: "Returns", "Waits until", "Raises".

English does not tell a verb's third person from a plural by its letters, so the plurals and pronouns that docstrings
have begun with are listed. Classes and modules are things; their docstrings may begin with a noun.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("daemon", "spark_apply", "demo", "record_processors", "localstack", "tools", "benchmarks", "tests")

VERB = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*(?<![sui])s\b(?!')")
"""One capitalised word in -s; -ss, -us and -is end no third person ("Pass", "Previous", "This")."""

NO_VERB = re.compile(
    r"(Always|Arguments|Besides|Bytes|Children|Columns|Credentials|Days|Deltas|Entries|Errors|Events|Facts|Fields|Files"
    r"|Hours|Items|Its|Keys|Leases|Lines|Messages|Milliseconds|Minutes|Names|Options|Others|Ours|Outcomes|Parts|Perhaps"
    r"|Records|Results|Rows|Seconds|Settings|Shards|Signatures|Sometimes|Sources|Tables|Targets|Tests|Theirs|Those|Units"
    r"|Values|Versions|Words|Workers)\b"
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_function_docstrings_begin_with_a_verb_in_the_third_person(folder: str) -> None:
    assert [line for path in programs(folder) for line in other_beginnings(path)] == []


@pytest.mark.parametrize("summary", ["Returns the leases.", "Waits until it is gone.", "Re-reads the file.", "Runs"])
def test_a_verb_in_the_third_person_is_recognised(summary: str) -> None:
    assert begins_with_verb(summary)


@pytest.mark.parametrize(
    "summary", ["Return the leases.", "The leases.", "Leases by shard.", "Pass it on.", "Seconds to wait.", "its end"]
)
def test_another_beginning_is_recognised(summary: str) -> None:
    assert not begins_with_verb(summary)


def programs(folder: str) -> list[Path]:
    """Returns the Python files below a folder that git knows."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", f"{folder}/*.py"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def other_beginnings(path: Path) -> Iterator[str]:
    """Yields where a function's docstring begins otherwise, and how."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
            summary = text.partition("\n")[0]
            if not begins_with_verb(summary):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {summary}"


def begins_with_verb(summary: str) -> bool:
    """Tells whether the first word is a verb in the third person."""
    return VERB.match(summary) is not None and NO_VERB.match(summary) is None
