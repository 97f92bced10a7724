"""The server's stream of events: places, files, refusals, a server that goes away."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql import binlog_connection
from kainite.capture.mysql.binlog_connection import BinlogStream
from kainite.capture.mysql.events import Kind
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.rows import ROWS
from support.mariadb_source import execute, here, rows
from support.waiting import eventually


def start(database: str) -> BinlogPlace:
    found = here(database)
    return BinlogPlace(found["file"], found["position"])


def receive_all(stream: BinlogStream, timeout: float) -> None:
    for _ in range(100):
        stream.receive(timeout)


def test_places_are_those_of_the_server_over_files(database: str) -> None:
    begin = start(database)
    execute(database, "CREATE TABLE t (id int PRIMARY KEY)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (1)")
    goal, found = start(database), []
    with BinlogStream.open(database, begin) as stream:
        stream.begin()
        while stream.place != goal:
            if (received := stream.receive(1.0)) is not None:
                found.append(received)
    assert found[0][1] == begin
    assert Kind.XID in [event.kind for event, _ in found]
    with BinlogStream.open(database, found[-1][1]) as stream:
        assert stream.receive(10.0) == found[-1], "the same place gives the same event"


def test_a_large_row_comes_whole(database: str) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY, b LONGBLOB)", "SET GLOBAL max_allowed_packet = 67108864")
    begin = start(database)
    execute(database, "INSERT INTO t VALUES (1, REPEAT('x', 12000000))", "UPDATE t SET b = REPEAT('y', 12000000)")
    sizes: list[int] = []
    with BinlogStream.open(database, begin) as stream:
        while len(sizes) < 2:
            received = stream.receive(10.0)
            assert received is not None
            sizes += [len(received[0].body)] if received[0].kind in ROWS else []
    assert sizes[0] > 12_000_000
    assert sizes[1] > 24_000_000, "more than a packet of the protocol"


def test_a_file_that_is_gone_is_refused(database: str) -> None:
    with (
        BinlogStream.open(database, BinlogPlace("binlog.000000", 4)) as stream,
        pytest.raises(SourceError, match="copy the"),
    ):
        stream.begin()


def test_a_user_without_the_right_is_told_the_grant(database: str) -> None:
    execute(
        database,
        "DROP USER IF EXISTS reader@localhost",
        "CREATE USER reader@localhost",
        "GRANT SELECT ON *.* TO reader@localhost",
    )
    with (
        pytest.raises(SourceError, match="REPLICATION SLAVE"),
        BinlogStream.open(database.replace("root@", "reader@"), start(database)) as stream,
    ):
        stream.begin()


def test_a_session_that_is_killed_is_noticed(database: str) -> None:
    with BinlogStream.open(database, start(database)) as stream:
        stream.begin()
        dumps = "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump' AND db = DATABASE()"
        eventually(lambda: len(rows(database, dumps)) == 1)
        execute(database, f"KILL {rows(database, dumps)[0][0]}")
        with pytest.raises(SourceError, match="source"):
            receive_all(stream, 1.0)


def test_a_silent_server_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binlog_connection, "SILENT_S", 0.05)
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        stream = BinlogStream(cast(Any, SimpleNamespace(_sock=ours)), BinlogPlace("b", 4), checksums=False)
        with pytest.raises(SourceError, match="said nothing"):
            receive_all(stream, 0.02)


def test_a_file_of_any_name_follows_and_the_place_waits_for_its_description() -> None:
    """Shows that b.1000000 follows b.999999, though it is less as a text; its time is told later."""
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        stream = BinlogStream(cast(Any, SimpleNamespace(_sock=ours)), BinlogPlace("b.999999", 4), checksums=False)
        theirs.sendall(packet(Kind.ROTATE, bytes(8) + b"b.999999", 0) + description(1, 100) + rotation(100))
        stream.begin()
        while stream.receive(0.01) is not None:
            pass
        assert (stream.begun, stream.place) == (1, BinlogPlace("b.999999", 100))
        theirs.sendall(description(2, 100))
        assert stream.receive(10.0) is not None
        assert (stream.begun, stream.place) == (2, BinlogPlace("b.1000000", 100))


def packet(kind: Kind, body: bytes, end: int, time: int = 1) -> bytes:
    event = struct.pack("<IBIIIH", time, kind, 7, 19 + len(body), end, 0) + body
    return (len(event) + 1).to_bytes(3, "little") + b"\0\0" + event


def description(time: int, end: int) -> bytes:
    return packet(Kind.FORMAT_DESCRIPTION, bytes(end - 4 - 19), end, time)


def rotation(at: int) -> bytes:
    return packet(Kind.ROTATE, (4).to_bytes(8, "little") + b"b.1000000", at + 36)


@pytest.mark.parametrize("now", ["NONE", "CRC32"])
def test_a_file_without_checksums_is_read_from_its_middle_whatever_the_server_writes_now(
    database: str, now: str
) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY)", "SET GLOBAL binlog_checksum = NONE")
    try:
        execute(database, "INSERT INTO t VALUES (1)")
        begin = start(database)
        execute(database, "INSERT INTO t VALUES (2)", f"SET GLOBAL binlog_checksum = {now}", "INSERT INTO t VALUES (3)")
        goal, kinds = start(database), []
        with BinlogStream.open(database, begin) as stream:
            stream.begin()
            while stream.place != goal:
                received = stream.receive(10.0)
                assert received is not None
                kinds.append(received[0].kind)
        assert kinds.count(Kind.XID) == 2
    finally:
        execute(database, "SET GLOBAL binlog_checksum = CRC32")


@pytest.mark.parametrize(
    ("packet", "message"),
    [(b"\1\0\0\0\7", "no event"), (b"\5\0\0\0\xfe\0\0\0\0", "shuts down"), (b"\5\0\0\0\xff\xd4\4no", "from there on")],
)
def test_what_is_no_event_is_refused(packet: bytes, message: str) -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        threading.Thread(target=theirs.sendall, args=(packet,)).start()
        stream = BinlogStream(cast(Any, SimpleNamespace(_sock=ours)), BinlogPlace("b", 4), checksums=False)
        with pytest.raises(SourceError, match=message):
            stream.receive(10.0)
