"""Decodes PostgreSQL's pgoutput messages, protocol version 1: bytes to values, no I/O.

Source: PostgreSQL manual, chapter *Logical Replication Message Formats*. Version 1 sends whole
committed transactions, one after the other in commit order::

    Begin  (Relation | Type | Origin | Insert | Update | Delete | Truncate | Logical message)*  Commit

A logical message that belongs to no transaction (``pg_logical_emit_message`` with ``false``) comes between two.

Column values come as text, in the type's own output form. PostgreSQL does not send a value that is
stored out of line and was not changed: :data:`UNCHANGED` stands for it.

Bytes that are no such message, or too few or too many, raise :class:`~kainite.base.errors.SourceError`. A change of a
row that is whole and that cannot be carried all the same (:class:`LostChange`) is a message like the others: its
transaction's unit fails, and what follows goes on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from kainite.base.errors import SourceError

# PostgreSQL counts microseconds from 2000-01-01 00:00 UTC.
EPOCH_OFFSET_US = 946_684_800_000_000

MAX_CHANGE: Final = 64 * 2**20
"""Most bytes of a change of a row, old values and new ones. A record processor writes a delta on a line, which may have
as many bytes (``kainite.child.json_lines.dialect``)."""


class Unchanged(Enum):
    """A value that an update left as it was and that the source did not send."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED
Value: TypeAlias = str | Unchanged | None
Values: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class BeginMessage:
    """The start of a transaction that committed at ``final_lsn``, at ``commit_us`` (Unix µs)."""

    final_lsn: int
    commit_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """The end of a transaction: everything below ``end_lsn`` may be acknowledged with it."""

    commit_lsn: int
    end_lsn: int
    commit_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A table's column; ``is_key`` when the column is part of the replica identity."""

    name: str
    type_oid: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table. PostgreSQL sends it before the table's first change on a connection, and after the table was altered.

    ``replica_identity`` is ``d`` (primary key), ``n`` (nothing), ``f`` (all columns), ``i`` (an index).
    """

    oid: int
    schema: str
    name: str
    replica_identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class InsertMessage:
    relation: int
    new: Values


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """An updated row; ``key`` holds the old key columns if the key changed, ``old`` the old row if it is sent."""

    relation: int
    new: Values
    key: Values | None = None
    old: Values | None = None


@dataclass(frozen=True, slots=True)
class DeleteMessage:
    """A deleted row: either ``key`` (key columns, the others null) or ``old`` (the whole row) is set."""

    relation: int
    key: Values | None = None
    old: Values | None = None


@dataclass(frozen=True, slots=True)
class LostChange:
    """A change of a row that no record can carry; ``operation`` is insert, update or delete."""

    relation: int
    operation: str
    cause: str


@dataclass(frozen=True, slots=True)
class TruncateMessage:
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TypeName:
    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    commit_lsn: int
    name: str


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What a session wrote into the WAL by ``pg_logical_emit_message``, without its content."""

    transactional: bool
    prefix: str


Message: TypeAlias = (
    BeginMessage
    | CommitMessage
    | Relation
    | InsertMessage
    | UpdateMessage
    | DeleteMessage
    | LostChange
    | TruncateMessage
    | TypeName
    | Origin
    | LogicalMessage
)


class NotTextError(SourceError):
    """Bytes that a string should consist of are not UTF-8."""


def is_change(data: bytes) -> bool:
    """Tells whether a message is a change of rows, which belongs to a transaction; does not decode it."""
    return data[:1] in (b"I", b"U", b"D", b"T")


def decode(data: bytes) -> Message:
    """Decodes one message.

    Raises:
        SourceError: the message is cut short, has bytes left over, or is of a kind unknown to version 1.
    """
    cursor = Cursor(data)
    kind = cursor.char()
    reader = _READERS.get(kind)
    if reader is None:
        raise SourceError(f"pgoutput: unknown message kind {kind!r}; Kainite speaks protocol version 1")
    if kind in _ROW_CHANGES and len(data) > MAX_CHANGE:
        cause = f"the row takes {len(data)} bytes as text, and a change may take {MAX_CHANGE} (64 MiB)"
        return LostChange(cursor.number(4), _ROW_CHANGES[kind], cause)
    try:
        message = reader(cursor)
    except NotTextError as error:
        if kind not in _ROW_CHANGES:
            raise
        return LostChange(int.from_bytes(data[1:5], "big"), _ROW_CHANGES[kind], str(error))
    cursor.end()
    return message


class Cursor:
    """A read position in a message; every read checks that the bytes are there."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise SourceError(f"pgoutput: message cut short at byte {self._at} of {len(self._data)}")
        self._at += size
        return self._data[self._at - size : self._at]

    def char(self) -> str:
        return self.take(1).decode("latin-1")

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def time(self) -> int:
        """Reads a time stamp, as microseconds since the Unix epoch."""
        (value,) = struct.unpack(">q", self.take(8))
        return int(value) + EPOCH_OFFSET_US

    def string(self) -> str:
        """Reads a null-terminated string."""
        text = self.text(self._length())
        self._at += 1
        return text

    def any_string(self) -> str:
        """Reads a null-terminated string of any bytes; what is not UTF-8 is replaced."""
        raw = self.take(self._length())
        self._at += 1
        return raw.decode("utf-8", "replace")

    def _length(self) -> int:
        """Returns how many bytes are before the next null."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise SourceError(f"pgoutput: string without an end at byte {self._at}")
        return end - self._at

    def text(self, size: int) -> str:
        raw = self.take(size)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise NotTextError(
                "pgoutput: a text is not UTF-8: the source's database has the encoding SQL_ASCII, and holds another one"
            ) from None

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        if self._at != len(self._data):
            raise SourceError(f"pgoutput: {len(self._data) - self._at} bytes too many in a message")


def _begin(cursor: Cursor) -> BeginMessage:
    return BeginMessage(final_lsn=cursor.number(8), commit_us=cursor.time(), xid=cursor.number(4))


def _commit(cursor: Cursor) -> CommitMessage:
    cursor.number(1)  # flags, none are defined
    return CommitMessage(commit_lsn=cursor.number(8), end_lsn=cursor.number(8), commit_us=cursor.time())


def _relation(cursor: Cursor) -> Relation:
    oid, schema, name, identity = cursor.number(4), cursor.string(), cursor.string(), cursor.char()
    columns = tuple(_column(cursor) for _ in range(cursor.number(2)))
    return Relation(oid, schema or "pg_catalog", name, identity, columns)


def _column(cursor: Cursor) -> RelationColumn:
    flags, name, type_oid = cursor.number(1), cursor.string(), cursor.number(4)
    cursor.number(4)  # type modifier: the target's own columns have it
    return RelationColumn(name, type_oid, bool(flags & 1))


def _insert(cursor: Cursor) -> InsertMessage:
    relation = cursor.number(4)
    _expect(cursor.char(), "N")
    return InsertMessage(relation, _values(cursor))


def _update(cursor: Cursor) -> UpdateMessage:
    relation, mark = cursor.number(4), cursor.char()
    key = _values(cursor) if mark == "K" else None
    old = _values(cursor) if mark == "O" else None
    _expect(mark if key is None and old is None else cursor.char(), "N")
    return UpdateMessage(relation, _values(cursor), key, old)


def _delete(cursor: Cursor) -> DeleteMessage:
    relation, mark = cursor.number(4), cursor.char()
    _expect(mark, "KO")
    values = _values(cursor)
    return DeleteMessage(relation, key=values) if mark == "K" else DeleteMessage(relation, old=values)


def _truncate(cursor: Cursor) -> TruncateMessage:
    count = cursor.number(4)
    cursor.number(1)  # CASCADE and RESTART IDENTITY
    return TruncateMessage(tuple(cursor.number(4) for _ in range(count)))


def _type(cursor: Cursor) -> TypeName:
    return TypeName(cursor.number(4), cursor.string() or "pg_catalog", cursor.string())


def _origin(cursor: Cursor) -> Origin:
    return Origin(cursor.number(8), cursor.string())


def _logical_message(cursor: Cursor) -> LogicalMessage:
    transactional = bool(cursor.number(1) & 1)
    cursor.number(8)  # the message's LSN
    prefix = cursor.any_string()  # anybody may have written it: it must not end the extraction
    cursor.take(cursor.number(4))  # the content is bytes, of anybody
    return LogicalMessage(transactional, prefix)


def _values(cursor: Cursor) -> Values:
    return tuple(_value(cursor) for _ in range(cursor.number(2)))


def _value(cursor: Cursor) -> Value:
    kind = cursor.char()
    if kind == "n":
        return None
    if kind == "u":
        return UNCHANGED
    _expect(kind, "t")
    return cursor.text(cursor.number(4))


def _expect(found: str, allowed: str) -> None:
    if found not in allowed:
        raise SourceError(f"pgoutput: {found!r} where one of {allowed!r} belongs")


_ROW_CHANGES: Final = {"I": "insert", "U": "update", "D": "delete"}
_READERS: dict[str, Callable[[Cursor], Message]] = {
    "B": _begin,
    "C": _commit,
    "R": _relation,
    "I": _insert,
    "U": _update,
    "D": _delete,
    "T": _truncate,
    "Y": _type,
    "O": _origin,
    "M": _logical_message,
}
