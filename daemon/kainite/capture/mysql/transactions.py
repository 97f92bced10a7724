"""Follows the binlog from transaction to transaction; a state machine without I/O.

States: *between* transactions, or *inside* one. Each event is handed on as it comes: a transaction takes no memory here
but for the descriptions of its tables.

==========================  =========================================================================================
begins with                 ends with
==========================  =========================================================================================
a GTID of MariaDB           an XID, or a ``COMMIT`` or ``ROLLBACK`` as a text; one that stands alone with its text
a GTID of MySQL             the text behind it, unless that is ``BEGIN``; then as above
a GTID of an XA             ``XA_PREPARE``: nothing has committed yet. ``XA COMMIT`` or ``XA ROLLBACK`` comes as a
transaction                 transaction of its own, perhaps in another file
==========================  =========================================================================================

MySQL carries out foreign keys' actions by itself since 9.6, and logs what they change
(:mod:`~kainite.capture.mysql.followers`): those rows are put behind their parent's.

A crash loses the place in the transaction; the server sends all of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import (
    IDLE,
    Event,
    Kind,
    gtid_of,
    prepares_xa,
    query_of,
    stands_alone,
)
from kainite.capture.mysql.followers import Followers
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.rows import ROWS
from kainite.capture.mysql.statements import LoggedStatement, Means, statement_of
from kainite.capture.mysql.table_map import table_id_of

_GTIDS: Final = frozenset({Kind.GTID_MARIADB, Kind.GTID_MYSQL, Kind.GTID_TAGGED, Kind.ANONYMOUS_GTID})
_OWN_STATEMENT: Final = frozenset({Means.SAVEPOINT, Means.ROLLBACK_TO, Means.XA_START, Means.XA_END, Means.BEGIN})


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction begins.

    Attributes:
        gtid: the server's name for it; its place where it is anonymous.
        place: where it begins.
    """

    gtid: str
    place: BinlogPlace


@dataclass(frozen=True, slots=True)
class Rows:
    """Changed rows.

    Attributes:
        table: the body of the event that describes the table.
        event: the rows.
    """

    table: bytes
    event: Event


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A transaction has ended.

    Attributes:
        how: COMMIT, ROLLBACK, or XA_END where it is prepared.
        time: when, seconds since the epoch.
        xa: the XA transaction that was prepared; empty for another end.
    """

    how: Means
    time: int
    xa: str = ""


@dataclass(frozen=True, slots=True)
class UnreadableRows:
    """Changed rows of which the event cannot be read.

    Attributes:
        why: what it is, and what helps later ones.
        table: the body of the event that describes the table; None where the event is about tables of any database.
    """

    why: str
    table: bytes | None = None


Inside: TypeAlias = Rows | UnreadableRows | LoggedStatement
"""What an event means inside a transaction."""
Step: TypeAlias = Begun | Inside | TransactionEnded
"""What an event means: the beginning of a transaction, something inside it, or its end."""


class BinlogAssembler:
    """Follows one connection.

    Attributes:
        inside: whether a transaction has begun and not ended.
    """

    def __init__(self) -> None:
        self.inside = False
        self._stands_alone = False
        self._xa = ""
        self._prepares = False  # MariaDB says it at the beginning, MySQL by the statement that follows
        self._tables: dict[int, bytes] = {}
        self._followers: Followers[Rows] = Followers()

    @property
    def prepares(self) -> bool:
        """Tells whether it is inside an XA transaction, whose changes count when that commits."""
        return self.inside and (self._prepares or bool(self._xa))

    def feed(self, event: Event, place: BinlogPlace) -> tuple[Step, ...]:
        """Takes the next event and the place where it begins; returns what it means.

        Raises:
            SourceError: the event does not belong here, or changes rows in a way that is not readable.
        """
        if event.kind in ROWS:
            return self._followers.add(event, Rows(self._table_of(event), event))
        if event.kind == Kind.TABLE_MAP:
            self._tables[table_id_of(event.body)] = event.body
            return ()
        return (*self._followers.leave(), *self._other(event, place))

    def _other(self, event: Event, place: BinlogPlace) -> tuple[Step, ...]:
        """Returns what an event means that has no rows, or none that can be read."""
        kind = event.kind
        if kind in _GTIDS:
            return self._begin(event, place)
        if kind in (Kind.QUERY, Kind.QUERY_COMPRESSED):
            return self._statement(event, place)
        if kind == Kind.EXECUTE_LOAD_QUERY:  # a query with 13 bytes more
            return self._statement(replace(event, body=event.body[:13] + event.body[26:]), place)
        if kind == Kind.FORMAT_DESCRIPTION and self.inside:
            return self._end(event, Means.ROLLBACK)  # the server died while it wrote the transaction
        if kind == Kind.XID:
            return self._end(event, Means.COMMIT)
        if kind == Kind.XA_PREPARE:
            # MySQL logs XA COMMIT … ONE PHASE as a preparation that says so.
            return self._end(event, Means.XA_COMMIT if event.body[:1] == b"\1" else Means.XA_END)
        if kind == Kind.PARTIAL_UPDATE_ROWS:
            return (UnreadableRows(_PARTIAL, self._table_of(event)),)
        if kind == Kind.TRANSACTION_PAYLOAD:  # all of a transaction behind its GTID
            return (UnreadableRows(_COMPRESSED), *self._end(event, Means.COMMIT))
        if kind not in IDLE and not event.ignorable:
            raise SourceError(f"binlog: {_UNREADABLE.get(kind, f'an event of the kind {kind}, which is not known')}")
        return ()

    def _begin(self, event: Event, place: BinlogPlace) -> tuple[Step, ...]:
        if self.inside:
            raise SourceError(f"binlog: a transaction begins inside another at {place}")
        gtid = None if event.kind == Kind.GTID_TAGGED else gtid_of(event)
        self.inside, self._xa, self._prepares = True, "", prepares_xa(event)
        # MariaDB tells at once; MySQL by the statement that follows.
        self._stands_alone = event.kind != Kind.GTID_MARIADB or stands_alone(event)
        self._tables.clear()
        return (Begun(gtid or str(place), place),)

    def _statement(self, event: Event, place: BinlogPlace) -> tuple[Step, ...]:
        statement = statement_of(query_of(event.body, compressed=event.kind == Kind.QUERY_COMPRESSED))
        if not self.inside:  # a server without GTIDs
            begun: tuple[Step, ...] = (Begun(str(place), place),)
            self.inside, self._stands_alone, self._xa, self._prepares = True, True, "", False
            self._tables.clear()
            return begun + self._within(event, statement)
        return self._within(event, statement)

    def _within(self, event: Event, statement: LoggedStatement) -> tuple[Step, ...]:
        means = statement.means
        if means in (Means.BEGIN, Means.XA_START):
            self._stands_alone = False
        if means in (Means.XA_START, Means.XA_END):
            self._xa = statement.name
        if means in (Means.COMMIT, Means.ROLLBACK):
            return self._end(event, means)
        if means in _OWN_STATEMENT or not self._stands_alone:
            return (statement,)
        return (statement, *self._end(event, Means.COMMIT))

    def _end(self, event: Event, how: Means) -> tuple[Step, ...]:
        if not self.inside:
            raise SourceError("binlog: a transaction ends without its beginning")
        self.inside = False
        return (TransactionEnded(how, event.time, self._xa),)

    def _table_of(self, event: Event) -> bytes:
        """Returns the description of the table whose rows an event has."""
        table = self._tables.get(table_id_of(event.body))
        if table is None or not self.inside:
            raise SourceError("binlog: rows outside a transaction, or before their table")
        return table


_UNREADABLE: Final[Mapping[int, str]] = {
    Kind.INCIDENT: "the server has lost changes (an incident event); copy the tables again and begin behind it",
}
_COMPRESSED: Final = "a compressed transaction, which is not read: SET GLOBAL binlog_transaction_compression = OFF"
_PARTIAL: Final = "a partial update of JSON, which is not read: SET GLOBAL binlog_row_value_options = ''"
