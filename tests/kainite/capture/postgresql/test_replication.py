"""A slot of a real server: what is acknowledged is gone, what is not comes again."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql import replication
from kainite.capture.postgresql.pgoutput import CommitMessage, InsertMessage, decode
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot, create_slot
from kainite.capture.postgresql.replication_frames import Data, Keepalive, format_lsn
from kainite.capture.postgresql.transactions import Assembler, SourceChange

LIMIT = 10.0


def insert(source: SourceSlot, *ids: int) -> None:
    with psycopg.connect(source.url) as connection:
        for number in ids:
            connection.execute("INSERT INTO item VALUES (%s, 'x', 1.10)", [number])


def made(source: SourceSlot) -> int:
    with create_slot(source) as slot:
        return slot.lsn


@dataclass(frozen=True)
class Committed:
    """A transaction that was read: its changes, and the LSN behind it."""

    changes: tuple[SourceChange, ...]
    end_lsn: int


def read(stream: ReplicationStream, count: int) -> list[Committed]:
    assembler, changes, found = Assembler(), list[SourceChange](), list[Committed]()
    deadline = time.monotonic() + LIMIT
    while len(found) < count and time.monotonic() < deadline:
        frame = stream.receive(0.1)
        if not isinstance(frame, Data):
            continue
        message = decode(frame.payload)
        changes += assembler.feed(message)
        if isinstance(message, CommitMessage):
            found.append(Committed(tuple(changes), message.end_lsn))
            changes.clear()
    return found


def ids(transactions: list[Committed]) -> list[list[str]]:
    rows = [[change.row for change in t.changes] for t in transactions]
    return [[str(row.new[0]) for row in some if isinstance(row, InsertMessage)] for some in rows]


def confirmed(source: SourceSlot) -> str:
    with psycopg.connect(source.url) as connection:
        query = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, [source.slot]).fetchone()
    assert row is not None
    return str(row[0])


def status(source: SourceSlot) -> str:
    with psycopg.connect(source.url) as connection:
        query = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, [source.slot]).fetchone()
    assert row is not None
    return str(row[0])


def test_a_new_slot_gives_what_commits_after_its_snapshot(source: SourceSlot) -> None:
    insert(source, 1)
    with create_slot(source) as slot:
        insert(source, 2)
        with psycopg.connect(source.url) as copy:
            copy.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            copy.execute(f"SET TRANSACTION SNAPSHOT '{slot.snapshot}'")
            assert copy.execute("SELECT id FROM item").fetchall() == [(1,)]
    with ReplicationStream.open(source, slot.lsn) as stream:
        assert ids(read(stream, 1)) == [["2"]]


def test_what_is_not_acknowledged_comes_again_and_what_is_does_not(source: SourceSlot) -> None:
    lsn = made(source)
    insert(source, 1, 2)
    insert(source, 3)
    with ReplicationStream.open(source, lsn) as stream:
        assert ids(read(stream, 2)) == [["1", "2"], ["3"]]
    with ReplicationStream.open(source, lsn) as stream:
        first, _ = read(stream, 2)
        stream.acknowledge(first.end_lsn)
        deadline = time.monotonic() + LIMIT
        while confirmed(source) != format_lsn(first.end_lsn) and time.monotonic() < deadline:
            stream.receive(0.01)
    assert confirmed(source) == format_lsn(first.end_lsn)
    with ReplicationStream.open(source, first.end_lsn) as stream:
        assert ids(read(stream, 1)) == [["3"]]


def test_a_start_after_the_slots_own_place_skips_what_was_done(source: SourceSlot) -> None:
    lsn = made(source)
    insert(source, 1)
    with ReplicationStream.open(source, lsn) as stream:
        (done,) = read(stream, 1)
    insert(source, 2)
    with ReplicationStream.open(source, done.end_lsn) as stream:
        assert ids(read(stream, 1)) == [["2"]]


def test_a_slot_that_is_ahead_of_the_reader_is_refused(source: SourceSlot) -> None:
    lsn = made(source)
    insert(source, 1)
    with ReplicationStream.open(source, lsn) as stream:
        (done,) = read(stream, 1)
        stream.acknowledge(done.end_lsn)
    deadline = time.monotonic() + LIMIT
    while confirmed(source) == format_lsn(lsn) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(SourceError, match="what committed between them is lost"):
        ReplicationStream.open(source, lsn)


def test_keepalives_arrive_while_nothing_is_committed(source: SourceSlot) -> None:
    with ReplicationStream.open(source, made(source)) as stream:
        frames = [stream.receive(1.0)]
    assert isinstance(frames[0], Keepalive)


def test_a_server_that_ends_the_connection_is_reported(source: SourceSlot) -> None:
    with ReplicationStream.open(source, made(source)) as stream:
        with psycopg.connect(source.url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s", [source.slot]
            )
        with pytest.raises(SourceError, match="replication: "):
            read(stream, 1)


def test_a_server_that_says_nothing_any_more_is_reported(source: SourceSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication, "SILENT_S", 0.5)
    with ReplicationStream.open(source, made(source)) as stream:
        read(stream, 0)
        with psycopg.connect(source.url, autocommit=True) as admin:
            query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
            row = admin.execute(query, [source.slot]).fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGSTOP)
        try:
            with pytest.raises(SourceError, match=r"the source server has said nothing for 0\.5 s"):
                read(stream, 1)
        finally:
            os.kill(row[0], signal.SIGCONT)


def test_a_slot_that_was_invalidated_says_what_is_lost(postgres_server: str, source: SourceSlot) -> None:
    lsn = made(source)
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            deadline = time.monotonic() + LIMIT
            while status(source) != "lost" and time.monotonic() < deadline:
                admin.execute("SELECT pg_switch_wal()")
                insert(source, int(time.monotonic_ns() % 2_000_000_000))
                admin.execute("CHECKPOINT")
        finally:
            admin.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            admin.execute("SELECT pg_reload_conf()")
    with pytest.raises(SourceError, match=r"was invalidated \(wal_removed\): the server has removed WAL"):
        ReplicationStream.open(source, lsn)


@pytest.mark.parametrize(
    ("slot", "complaint"), [("missing", "does not exist"), ("Odd Name", "lower-case letters"), ("", "lower-case")]
)
def test_a_slot_that_is_not_there_is_named(source: SourceSlot, slot: str, complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        ReplicationStream.open(replace(source, slot=slot), 0)


def test_a_server_that_is_not_there_is_reported_in_one_line() -> None:
    with (
        pytest.raises(SourceError, match="cannot connect to the source server: ") as caught,
        create_slot(SourceSlot("host=/nonexistent", "s", "p")),
    ):
        pass
    assert "\n" not in str(caught.value)
