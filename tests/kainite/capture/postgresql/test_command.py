"""``kainite-extract-postgresql`` as a user starts it: its help, and one line for whatever is wrong."""

from __future__ import annotations

import subprocess
import sysconfig
import time
from pathlib import Path

import orjson
import psycopg
import pytest

from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.capture.postgresql.replication_frames import format_lsn

LIMIT = 60.0
NOWHERE = ("--source", "postgresql:///?host=/nonexistent", "--slot", "s", "--publication", "p")


def program(
    *arguments: str, request: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [str(Path(sysconfig.get_path("scripts"), PROGRAM)), *arguments]
    return subprocess.run(command, input=request, env=env, capture_output=True, timeout=LIMIT, check=False)


def request(lsn: int, number: int = 0) -> bytes:
    return orjson.dumps({"start": {"lsn": format_lsn(lsn), "number": number}, "end": None}) + b"\n"


def options(source: SourceSlot) -> list[str]:
    return ["--source", source.url, "--slot", source.slot, "--publication", source.publication]


def test_it_answers_a_request_with_records_an_offset_and_the_end_of_the_cycle(source: SourceSlot) -> None:
    with create_slot(source) as slot:
        pass
    with psycopg.connect(source.url) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'x', 1.10)")
    done = program(*options(source), request=request(slot.lsn, 16))
    assert (done.returncode, done.stderr) == (0, b"")
    *messages, end = done.stdout.splitlines(keepends=True)
    change, unit_end, offset = map(orjson.loads, messages)
    assert (change["number"], change["new"]) == (17, {"id": "1", "name": "x", "price": "1.10"})
    assert (unit_end["uow"], unit_end["end"], unit_end["count"]) == (change["uow"], True, 1)
    assert 0 < unit_end["time"] <= time.time_ns()
    assert offset["offset"]["number"] == 17
    assert end == b"\0"


def test_help_shows_the_settings_and_the_way_to_the_first_records() -> None:
    done = program("--help")
    assert done.returncode == 0
    for text in (b"extractorName = kainite-extract-postgresql", b"CREATE PUBLICATION", b"--begin '{", b"wal_level"):
        assert text in done.stdout


def test_without_psycopg_it_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ModuleNotFoundError(\"No module named 'psycopg'\", name='psycopg')")
    done = program(*NOWHERE, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr.decode()) == (
        1,
        f"{PROGRAM}: reading PostgreSQL needs psycopg (No module named 'psycopg'): pip install 'kainite[postgresql]'\n",
    )


@pytest.mark.parametrize(
    ("status", "arguments", "sent", "complaint"),
    [
        (75, NOWHERE, request(1), "cannot connect to the source server: "),
        (1, ("--source", "postgresql://[x", *NOWHERE[2:]), request(1), "the source's connection URL is wrong: "),
        (1, NOWHERE, b"\n", "'' is no request with an offset: set extractorOffsets=kainite"),
        (1, NOWHERE, b'{"start":null,"end":null}\n', "null is no offset of this extractor: begin with {"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    status: int, arguments: tuple[str, ...], sent: bytes, complaint: str
) -> None:
    done = program(*arguments, request=sent)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, line.startswith(f"{PROGRAM}: {complaint}")) == (status, True), line


def test_a_slot_that_is_missing_and_a_journal_that_cannot_be_written_are_named(
    source: SourceSlot, tmp_path: Path
) -> None:
    missing = program(*options(source), request=request(1))
    assert f"replication slot {source.slot} does not exist" in missing.stderr.decode()
    with create_slot(source) as slot:
        pass
    with psycopg.connect(source.url) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
    nowhere = str(tmp_path / "no folder" / "journal")
    unwritten = program(*options(source), "--journal", nowhere, request=request(slot.lsn))
    assert [missing.returncode, unwritten.returncode] == [1, 1]
    assert nowhere in unwritten.stderr.decode()
    assert b"\0" not in unwritten.stdout, "the answer would look whole"
