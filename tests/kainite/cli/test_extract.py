"""``kainite extract`` as it is called: checks, the beginning, mistakes, and what a terminal shows."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from kainite.cli.extract import extract
from kainite.cli.main import main

LIMIT = 60.0


def call(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["extract", "-p", str(path), *options])


def test_a_beginning_is_made_once(bench: Any) -> None:
    path = bench.cyclic("true")
    assert call(path, "--begin", '{"page":3}').exit_code == 0
    assert bench.start() == {"page": 3}
    again = call(path, "--begin", "null")
    assert (again.exit_code, bench.start()) == (1, {"page": 3})
    assert "is there already: --begin is said once" in again.stderr


@pytest.mark.parametrize(
    ("offsets", "begin", "complaint"),
    [
        ("kainite", "{", "'{' is no JSON"),
        ("time", "yesterday", "'yesterday' is no time"),
        ("extractor", "null", "--begin is for extractorMode=cyclic with extractorOffsets=kainite or time"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused(bench: Any, offsets: str, begin: str, complaint: str) -> None:
    result = call(bench.cyclic("true", offsets=offsets), "--begin", begin)
    assert result.exit_code == 1
    assert complaint in result.stderr
    assert not bench.offset.exists()


def test_a_key_is_an_option_too(bench: Any) -> None:
    result = call(bench.settings("true"), "--extract-spread", "record", "--check", "--json")
    (line,) = [line for line in orjson.loads(result.stdout)["settings"] if line["key"] == "extractSpread"]
    assert (line["value"], line["origin"]) == ("record", "command line")


def test_a_terminal_shows_records_units_and_the_offset(bench: Any) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kainite", "extract", "-p", str(bench.counting(2)), "--once"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    output, _ = process.communicate(timeout=LIMIT)
    os.close(ours)
    assert (process.returncode, output) == (0, b"")
    plain = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", shown).decode()
    assert re.search(r"6 records · \d+/s · 2 units · offset 2\r\n", plain), plain


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way to say that the other side has closed it
        return b""


def test_the_help_has_examples() -> None:
    result = CliRunner().invoke(extract, ["--help"])
    assert "kainite extract -p app.properties --begin null" in result.output
