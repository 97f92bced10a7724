"""The examples of docs/extract.md, as they stand there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from kainite.extract.offsets.place import moment_text

PAGE = Path(__file__).parents[3] / "docs" / "extract.md"


@pytest.fixture
def scripts(bench: Any) -> dict[str, str]:
    """Returns the page's extractors, by the heading that each stands under."""
    found: dict[str, str] = {}
    for section in re.split(r"^##+ ", PAGE.read_text(), flags=re.MULTILINE):
        for number, script in enumerate(re.findall(r"```sh\n(#!/bin/sh\n.*?)```", section, re.DOTALL)):
            path = bench.folder / f"extractor-{len(found)}-{number}.sh"
            path.write_text(script)
            path.chmod(0o755)
            found[section.splitlines()[0]] = str(path)
    return found


def lines(first: int, last: int) -> list[bytes]:
    return [orjson.dumps({"uow": f"T{number}", "ordinal": 0}) for number in range(first, last)]


def write(path: Path, content: list[bytes]) -> None:
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in content)


@contextmanager
def half_a_line(path: Path) -> Iterator[None]:
    """Leaves half a line at the end of a file, as its writer does for a moment."""
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"uow":"T')
    yield
    os.truncate(path, size)


def test_plain(bench: Any, scripts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INBOX", str(bench.folder))
    write(bench.folder / "a.jsonl", lines(0, 3))
    write(bench.folder / "b.jsonl", lines(3, 5))
    for name in ("a.jsonl", "b.jsonl"):
        os.truncate(bench.folder / name, (bench.folder / name).stat().st_size - 1)  # their last lines lack an end
    assert bench.once(bench.settings(scripts["Plain: it writes, and exits"])) == 0
    assert sorted(bench.records()) == lines(0, 5)


def test_offsets_kept_by_kainite(bench: Any, scripts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = bench.folder / "source.jsonl"
    monkeypatch.setenv("SOURCE", str(source))
    path = bench.cyclic(scripts["Offsets kept by Kainite"])
    bench.begin("null")
    for first, last in ((0, 3), (3, 3), (3, 8)):
        write(source, lines(first, last))
        with half_a_line(source):
            assert bench.once(path) == 0
        assert (bench.start(), sorted(bench.records())) == (last, lines(0, last))


def test_ranges_of_time(bench: Any, scripts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = bench.folder / "app.log"
    monkeypatch.setenv("SOURCE", str(source))
    path = bench.cyclic(scripts["Ranges of time"], offsets="time")
    now = datetime.now(UTC)
    times = [now + timedelta(seconds=seconds) for seconds in (-7200, -3600, -60, 3600)]
    write(source, [f"{moment_text(moment)} line".encode() for moment in times])
    bench.begin(f'"{moment_text(times[1])}"', "time")
    for _ in range(2):
        assert bench.once(path) == 0
    assert sorted(bench.records()) == [f"{moment_text(moment)} line".encode() for moment in times[1:3]]


def test_offsets_kept_by_the_extractor(bench: Any, scripts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = bench.folder / "source.jsonl"
    monkeypatch.setenv("SOURCE", str(source))
    monkeypatch.setenv("STATE", str(bench.folder / "state"))
    path = bench.cyclic(scripts["Offsets kept by the extractor"], offsets="extractor")
    write(source, lines(0, 3))
    for _ in range(2):
        with half_a_line(source):
            assert bench.once(path) == 0
    assert sorted(bench.records()) == sorted(lines(0, 3) * 2), "nobody said that the answer is on the stream"
    assert (bench.folder / "state").read_text() == "0\n"
