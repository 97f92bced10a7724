"""Several readers have one place, whatever commits meanwhile, and live as long as one of them does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql import same_place
from kainite.capture.mysql.place import BinlogPlace
from kainite_spark.load import reader_link, snapshot_readers
from kainite_spark.load.reader_link import ReaderLink
from kainite_spark.load.snapshot_reader import ReaderWork
from kainite_spark.load.snapshot_readers import (
    begin_snapshot,
    hold_tables,
    release_snapshot,
    snapshot_lives,
)
from support.mariadb_source import execute, here, source_database
from support.waiting import eventually

BEGINNING: Final = BinlogPlace("binlog.000001", 4)


@pytest.fixture
def ends(mariadb_source_server: str, postgres: str) -> Iterator[ReaderWork]:
    with source_database(mariadb_source_server) as url:
        execute(url, "CREATE TABLE item (id INT PRIMARY KEY)")
        yield ReaderWork(url, postgres, "log/0", "")


@pytest.mark.parametrize("beginnings", [0, 50])
def test_readers_begin_at_one_place_and_end_when_they_are_released(
    ends: ReaderWork, beginnings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "BEGINNINGS", beginnings)
    snapshot, place = begin_snapshot(ends, 3, BEGINNING)
    assert {"file": place.file, "position": place.position, "number": 0} == here(ends.source_url)
    assert len(list(Path(snapshot).glob("*.sock"))) == 3
    hold_tables(snapshot, ["item"])
    with pytest.raises(SourceError, match="none"):
        hold_tables(snapshot, ["none"])
    assert snapshot_lives(snapshot)
    release_snapshot(snapshot)
    eventually(lambda: not snapshot_lives(snapshot))
    assert not Path(snapshot).exists()


def test_a_source_that_is_away_is_told_and_nothing_is_left(ends: ReaderWork, tmp_path: Path) -> None:
    away = ReaderWork(f"mariadb://root@/x?unix_socket={tmp_path}/none", ends.target, "log/0", "")
    with pytest.raises(SourceError, match="the source cannot be read"):
        begin_snapshot(away, 2, BEGINNING)


def test_a_snapshot_of_which_nothing_is_there_does_not_live(tmp_path: Path) -> None:
    assert not snapshot_lives(str(tmp_path / "none"))
    release_snapshot(str(tmp_path / "none"))


def test_a_frozen_reader_keeps_commits_out_of_the_source_for_a_moment_alone(
    ends: ReaderWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "BEGINNINGS", 0)
    monkeypatch.setattr(snapshot_readers, "BEGIN_S", 1.0)
    frozen: list[psutil.Process] = []

    class FreezingLink(ReaderLink):
        def __init__(self, path: Path, longest: float) -> None:
            super().__init__(path, longest)
            if path.name == "1.sock" and not frozen:
                frozen.append(next(one for one in psutil.process_iter() if listens(one, path)))
                os.kill(frozen[0].pid, signal.SIGSTOP)

    monkeypatch.setattr(reader_link, "ReaderLink", FreezingLink)
    try:
        with pytest.raises(SourceError, match="timed out"):
            begin_snapshot(ends, 2, BEGINNING)
        execute(ends.source_url, "SET lock_wait_timeout = 5", "INSERT INTO item VALUES (1)")
    finally:
        for process in frozen:
            os.kill(process.pid, signal.SIGCONT)
    eventually(lambda: not frozen[0].is_running() or frozen[0].status() == psutil.STATUS_ZOMBIE)


def listens(process: psutil.Process, path: Path) -> bool:
    """Tells whether a process is the reader at a socket."""
    try:
        return any(str(one.laddr) == str(path) for one in process.net_connections("unix"))
    except psutil.Error:
        return False
