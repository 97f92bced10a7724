"""A reader answers one request a line, and ends when its session does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite_spark.load.reader_link import ReaderLink
from kainite_spark.load.snapshot_reader import (
    BeginSnapshot,
    CheckReader,
    EndReader,
    HoldTables,
    ReaderWork,
    ReadStep,
    SnapshotReader,
    serve,
)
from support.mariadb_source import execute, here, rows, source_database


@pytest.fixture
def database(mariadb_source_server: str) -> Iterator[str]:
    with source_database(mariadb_source_server) as url:
        execute(url, "CREATE TABLE item (id INT PRIMARY KEY)")
        yield url


@pytest.fixture
def reader(database: str, tmp_path: Path) -> Iterator[SnapshotReader]:
    with closing(SnapshotSession(database)) as session:
        work = ReaderWork(database, "postgresql:///x?host=/nonexistent", "log/0", str(tmp_path / "s"))
        yield SnapshotReader(work, session)


def test_requests_have_their_answers(reader: SnapshotReader, database: str) -> None:
    begun = reader.answer(BeginSnapshot())
    assert {"file": begun.file, "position": begun.position, "number": 0} == here(database)
    assert reader.answer(HoldTables(("item",))).cause == ""
    assert "none" in reader.answer(HoldTables(("none",))).cause
    assert reader.answer(CheckReader()).cause == ""
    assert reader.answer(ReadStep(1, 1)).outcome == "again"  # the target is away
    assert not reader.over
    reader.answer(EndReader())
    assert reader.over


def test_a_reader_without_its_session_is_over(reader: SnapshotReader, database: str) -> None:
    reader.answer(BeginSnapshot())
    name = database.split("/")[3].split("?")[0]
    query = f"SELECT id FROM information_schema.processlist WHERE db = '{name}' AND id <> connection_id()"
    execute(database, f"KILL {rows(database, query)[0][0]}")
    assert "the source's session is gone" in reader.answer(CheckReader()).cause
    assert reader.over


def test_drivers_are_served_one_after_the_other(reader: SnapshotReader) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(reader.work.path)
        listener.listen()
        thread = threading.Thread(target=serve, args=(reader, listener))
        thread.start()
        with closing(ReaderLink(Path(reader.work.path), 30.0)) as first:
            assert first.ask(BeginSnapshot()).file
        with closing(ReaderLink(Path(reader.work.path), 30.0)) as second:
            second.ask(EndReader())
        thread.join()
