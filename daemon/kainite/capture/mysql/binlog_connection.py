"""Reads a server's binlog as a replica does: a connection that the server sends events on.

The server says that it lives each :data:`HEARTBEAT_S` seconds, with its place. The reader tells the server nothing and
is no registered replica: the server keeps the files by its own settings alone. While nobody reads, events wait in the
sockets; the server waits for a year before it takes the reader for dead (``net_write_timeout``).
"""

from __future__ import annotations

import secrets
import socket
import time
from typing import Any, Final, Self

import pymysql

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import (
    Event,
    Kind,
    decode_event,
    ends_with_checksum,
    is_made_rotation,
    rotated_to,
    writes_checksums,
)
from kainite.capture.mysql.place import BEGIN_ANEW, BinlogPlace
from kainite.capture.mysql.source_catalogue import as_source_error
from kainite.targets.mariadb.connection import connect

HEARTBEAT_S: Final = 5
SILENT_S: Final = 60.0
"""Seconds of waiting without a byte of the server after which the connection is taken for dead."""
_FIRST: Final = 4
_DUMP: Final = 0x12
_WRAPS: Final = 2**32
_MOST_PACKET: Final = 0xFFFFFF
_READ: Final = 2**18
_SESSION: Final = (
    "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum,"
    f" @mariadb_slave_capability = 4, @master_heartbeat_period = {HEARTBEAT_S * 10**9},"
    f" @source_heartbeat_period = {HEARTBEAT_S * 10**9}, SESSION net_write_timeout = 31536000"
)
_LOST_FILE: Final = 1236
_NO_RIGHT: Final = 1227


class BinlogStream:
    """Reads events from a place on, one after the other.

    Attributes:
        begun: when the present file was begun, seconds since the epoch; 0 until the server has said it.
    """

    def __init__(
        self, connection: pymysql.connections.Connection, start: BinlogPlace | None, *, checksums: bool
    ) -> None:
        self.begun = 0
        self._file = ""
        self._position = _FIRST
        self._left: BinlogPlace | None = None  # where a file ended, until the next one is described
        self._known = start is not None  # behind a GTID, the first event says the position
        self._connection: Any = connection
        self._checksums = checksums
        self._from = start
        self._buffer = bytearray()
        self._waited = 0.0

    @classmethod
    def open(cls, url: str, start: BinlogPlace | str) -> Self:
        """Asks the server for what committed behind a place, or behind a GTID of MariaDB.

        Raises:
            SourceError: the server refused.
        """
        with as_source_error():
            connection = connect(url)
            try:
                connection.query(_SESSION)
                if isinstance(start, str):
                    told = f"SET @slave_connect_state = {connection.escape(start)}, @slave_gtid_strict_mode = 1"
                    connection.query(told)
                with connection.cursor() as cursor:
                    cursor.execute("SELECT @@global.binlog_checksum")
                    row = cursor.fetchone()
                _send_dump(connection, start)
            except BaseException:
                connection.close()
                raise
        checksums = row is not None and str(row[0]).upper() == "CRC32"
        return cls(connection, start if isinstance(start, BinlogPlace) else None, checksums=checksums)

    @property
    def place(self) -> BinlogPlace | None:
        """Returns where the next event begins; None until the server has said it.

        Between two files this is the end of the first, to which alone :attr:`begun` belongs.
        """
        if self._left is not None:
            return self._left
        return BinlogPlace(self._file, self._position) if self._known and self._file else self._from

    @property
    def file(self) -> str:
        """Returns the present file; empty until the server has said it."""
        return self._file

    def receive(self, timeout: float) -> tuple[Event, BinlogPlace] | None:
        """Returns the next event of the file and the place where it begins; None after ``timeout`` seconds without one.

        Raises:
            SourceError: the connection is gone, the server has said nothing for :data:`SILENT_S` seconds of waiting,
                or it sent something else.
        """
        until = time.monotonic() + timeout
        while (data := self._packet(until)) is not None:
            event = self._decoded(data)
            if (placed := self._placed(event)) is not None and not self._is_passed(placed):
                return event, placed
        return None

    def _is_passed(self, placed: BinlogPlace) -> bool:
        """Returns whether an event stands in the first file before the place from which on events are wanted."""
        return self._from is not None and placed.file == self._from.file and placed.position < self._from.position

    def begin(self) -> None:
        """Waits until the server has said where it begins to send.

        Raises:
            SourceError: it refused, or did not within :data:`SILENT_S` seconds.
        """
        until = time.monotonic() + SILENT_S
        while not self.begun:
            if (data := self._packet(until)) is None:
                raise SourceError(f"the source server has sent nothing of its binlog for {SILENT_S:g} s")
            self._placed(self._decoded(data))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decoded(self, data: bytes) -> Event:
        described = len(data) > 4 and data[4] == Kind.FORMAT_DESCRIPTION
        if described:
            self._checksums = writes_checksums(data)
        # A description has room for a checksum also in a file without: there the server does not keep it right.
        verified = self._checksums or not described
        event = decode_event(data, checksums=described or self._has_checksum(data), verified=verified)
        if described:
            self.begun, self._left = event.time, None
        return event

    def _has_checksum(self, data: bytes) -> bool:
        """Returns whether an event has a checksum.

        Whether a rotation does that the server makes for the reader is up to the server: before the first file's
        description nothing says it, and the setting of now need not be the one that the file was written with.
        """
        return ends_with_checksum(data) if is_made_rotation(data) else self._checksums

    def _placed(self, event: Event) -> BinlogPlace | None:
        """Follows the place; returns where the event begins, None for one that the server made for the reader."""
        if event.kind == Kind.ROTATE:
            before = BinlogPlace(self._file, self._position)
            self._left = self._left or (before if self._file else None)
            self._file, self._position = rotated_to(event.body)
            return None if event.artificial else before
        if event.kind in (Kind.HEARTBEAT, Kind.HEARTBEAT_2):
            self._move(event.end or self._position)
            return None
        if event.artificial or (event.kind == Kind.FORMAT_DESCRIPTION and self._position > _FIRST):
            return None  # a file's description is sent again to a reader that begins inside the file
        self._move(event.end)
        return BinlogPlace(self._file, self._position - event.size)

    def _move(self, end: int) -> None:
        """Moves to a position of which the header tells the lower 32 bits: a file may be larger."""
        self._position += (end - self._position) % _WRAPS
        self._known = True

    def _packet(self, until: float) -> bytes | None:
        """Returns the next event's bytes; None at the time ``until`` without a whole one."""
        while (packet := _taken(self._buffer)) is None:
            if not self._fill(until - time.monotonic()):
                return None
        if packet[:1] == b"\xff":
            raise SourceError(_refusal(int.from_bytes(packet[1:3], "little"), packet[3:].decode("utf-8", "replace")))
        if packet[:1] == b"\xfe" and len(packet) < 9:
            raise SourceError("the source server ended the binlog's stream: it shuts down, or threw its binlog away")
        if packet[:1] != b"\0":
            raise SourceError("binlog: a packet that is no event")
        return packet[1:]

    def _fill(self, timeout: float) -> bool:
        """Reads what the server has sent; returns False where nothing came in time.

        PyMySQL itself cannot wait with a limit and keep what has come.
        """
        sock: socket.socket = self._connection._sock  # noqa: SLF001
        began = time.monotonic()
        try:
            sock.settimeout(max(timeout, 0.001))
            data = sock.recv(_READ)
        except TimeoutError:
            self._waited += time.monotonic() - began
            if self._waited > SILENT_S:
                raise SourceError(
                    f"the source server has said nothing for {SILENT_S:g} s, although it was to"
                ) from None
            return False
        except OSError as error:
            raise SourceError(f"the connection to the source broke: {error}") from None
        if not data:
            raise SourceError("the source server closed the connection")
        self._waited = 0.0
        self._buffer += data
        return True


def _send_dump(connection: Any, start: BinlogPlace | str) -> None:
    file, position = ("", _FIRST) if isinstance(start, str) else (start.file, start.position)
    if position >= _WRAPS:  # the command has 32 bits: all of the file is read, and what is before is passed over
        position = _FIRST
    # Replicas are told apart by a number; of two with the same one the server ends the first.
    server_id = secrets.randbelow(2**31) + 2**31
    body = position.to_bytes(4, "little") + b"\0\0" + server_id.to_bytes(4, "little")
    connection._execute_command(_DUMP, body + file.encode("utf-8", "surrogateescape"))  # noqa: SLF001


def _taken(buffer: bytearray) -> bytes | None:
    """Takes a packet out of the bytes that have come; None where it is not whole yet.

    A packet has a length of 3 bytes and a number; one of the greatest length goes on in the next.
    """
    ends, at, size = [], 0, _MOST_PACKET
    while size == _MOST_PACKET:
        if len(buffer) < at + 4:
            return None
        size = int.from_bytes(buffer[at : at + 3], "little")
        at += 4 + size
        ends.append((at - size, at))
    if len(buffer) < at:
        return None
    packet = b"".join(bytes(buffer[begin:end]) for begin, end in ends)
    del buffer[:at]
    return packet


def _refusal(number: int, message: str) -> str:
    text = " ".join(message.removeprefix("#").split())
    if number == _NO_RIGHT:
        return f"the source refuses to send its binlog: {text}; GRANT REPLICATION SLAVE ON *.* TO the user"
    if number == _LOST_FILE:
        return f"the source cannot send its binlog from there on: {text}; {BEGIN_ANEW}"
    return f"the source cannot send its binlog: {text}"
