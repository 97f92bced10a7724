"""A consistent point against a real server: what it holds, who is in its way, and what is locked meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
from psycopg import pq, sql

from kainite.base.errors import SourceError
from kainite.capture.postgresql.consistent_snapshot import consistent_snapshot, lives
from kainite.capture.postgresql.pgoutput import BeginMessage, decode
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot, create_slot
from kainite.capture.postgresql.replication_connection import execute
from kainite.capture.postgresql.replication_frames import Data
from support.waiting import eventually


def _item(connection: pq.abc.PGconn) -> Sequence[int]:
    return [int(execute(connection, "SELECT 'public.item'::regclass::oid").get_value(0, 0) or b"")]


def _nothing(_: pq.abc.PGconn) -> Sequence[int]:
    return ()


def _ids(url: str, snapshot: str) -> list[int]:
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        return [row[0] for row in connection.execute("SELECT id FROM item ORDER BY id")]


def _commits(source: SourceSlot, lsn: int, count: int) -> list[int]:
    """Returns the commit LSNs of the first transactions that the slot sends."""
    found: list[int] = []

    def read() -> bool:
        frame = stream.receive(0.1)
        message = decode(frame.payload) if isinstance(frame, Data) else None
        if isinstance(message, BeginMessage):
            found.append(message.final_lsn)
        return len(found) == count

    with ReplicationStream.open(source, lsn) as stream:
        eventually(read)
    return found


def test_the_snapshot_has_what_committed_before_the_point_and_the_slot_sends_the_rest(source: SourceSlot) -> None:
    with create_slot(source) as slot:
        pass
    with psycopg.connect(source.url, autocommit=True) as writer:
        writer.execute("INSERT INTO item VALUES (1)")
        with consistent_snapshot(source.url, _item) as point:
            writer.execute("INSERT INTO item VALUES (2)")
            found = _ids(source.url, point.snapshot)
        commits = _commits(source, slot.lsn, 2)
    assert found == [1]
    assert [commit >= point.lsn for commit in commits] == [False, True]
    assert point.source.database == source.slot


def test_the_snapshot_ends_with_the_block_and_leaves_no_slot(source: SourceSlot) -> None:
    with consistent_snapshot(source.url, _nothing) as point:
        assert lives(source.url, point.snapshot)
        with psycopg.connect(source.url) as other:
            held = other.execute("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()")
            assert held.fetchone() == (0,)
    assert not lives(source.url, point.snapshot)


def test_an_open_transaction_that_writes_is_named(source: SourceSlot) -> None:
    with psycopg.connect(source.url) as writer:
        writer.execute("INSERT INTO item VALUES (1)")
        pid = writer.info.backend_pid
        with (
            pytest.raises(SourceError, match=rf"In the way: .*pid {pid} .*pg_terminate_backend"),
            consistent_snapshot(source.url, _nothing, lock_wait=0.2),
        ):
            pass


@pytest.mark.parametrize("command", ["TRUNCATE item", "VACUUM FULL item", "DROP TABLE item"])
def test_the_tables_keep_their_rows_where_they_are(source: SourceSlot, command: str) -> None:
    with (
        consistent_snapshot(source.url, _item),
        psycopg.connect(source.url, autocommit=True) as other,
    ):
        other.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(command.encode())
        other.execute("INSERT INTO item VALUES (3)")


def test_a_table_that_was_truncated_while_the_snapshot_was_made_is_noticed(source: SourceSlot) -> None:
    def truncates_first(connection: pq.abc.PGconn) -> Sequence[int]:
        found = _item(connection)
        with psycopg.connect(source.url, autocommit=True) as other:
            other.execute("TRUNCATE item")
        return found

    with (
        pytest.raises(SourceError, match=r"public\.item: truncated"),
        consistent_snapshot(source.url, truncates_first),
    ):
        pass


def test_a_table_whose_name_went_to_another_while_the_snapshot_was_made_is_noticed(source: SourceSlot) -> None:
    """Shows rows, which are read by the table's name, are never another table's."""

    def exchanges_first(connection: pq.abc.PGconn) -> Sequence[int]:
        found = _item(connection)
        with psycopg.connect(source.url) as other:
            other.execute("CREATE TABLE fresh (LIKE item INCLUDING ALL)")
            other.execute("ALTER TABLE item RENAME TO former")
            other.execute("ALTER TABLE fresh RENAME TO item")
        return found

    with (
        pytest.raises(SourceError, match=r"public\.former: .*renamed"),
        consistent_snapshot(source.url, exchanges_first),
    ):
        pass


def test_a_table_that_is_locked_is_waited_for_and_its_holder_named(source: SourceSlot) -> None:
    with psycopg.connect(source.url) as holder:
        holder.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(SourceError, match=rf"lock timeout.*pid {holder.info.backend_pid} "),
            consistent_snapshot(source.url, _item, lock_wait=0.2),
        ):
            pass
