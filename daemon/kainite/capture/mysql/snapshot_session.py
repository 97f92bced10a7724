"""A session of MariaDB whose snapshot has a known place in the binlog, where the server has one.

``START TRANSACTION WITH CONSISTENT SNAPSHOT`` makes a snapshot of InnoDB which has exactly the transactions that stand
in the binlog before one place, and says the place (``Binlog_snapshot_file``, ``Binlog_snapshot_position``): the server
keeps commits out for the instant. No other session can take such a snapshot over. So who reads in parallel opens
several sessions, and begins in all of them until the places are the same.

The server removes nothing that a snapshot sees; but a table that is altered or truncated behind its back is gone for
it. So each session touches each table once; then ``ALTER TABLE``, ``TRUNCATE`` and ``DROP`` wait for its end.

MySQL has no such status variables, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import pymysql
from pymysql.cursors import SSCursor

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.snapshot_tables import backticked
from kainite.capture.mysql.source_catalogue import as_source_error
from kainite.capture.mysql.text_forms import SPELLINGS, TextSpelling
from kainite.targets.mariadb.connection import connect

LOCK_WAIT_S: Final = 10
"""Seconds for which a session waits for somebody who alters a table."""

BLOCK: Final = 256 * 1024
"""Characters behind which a block ends."""

_ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_SESSION: Final = (
    "SET SESSION wait_timeout = 86400, net_write_timeout = 3600,"
    " idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, max_statement_time = 0,"
    f" lock_wait_timeout = {LOCK_WAIT_S}"
)
_BEGIN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_PLACE: Final = "SHOW STATUS WHERE variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')"
_LOST: Final = frozenset({2006, 2013, 2055, 1927, 1053, 1317})
_ALTERED: Final = frozenset({1412, 1146, 1054})


class SnapshotGoneError(Exception):
    """The session, or what its snapshot sees, is gone."""


class SnapshotSession:
    """A session with a source, or with a target that is compared with it.

    Args:
        url: the database.
        failing: makes what the driver raises an error of Kainite; by default a SourceError.

    Raises:
        SourceError: the server refused, or is away; or what ``failing`` makes of that.
    """

    def __init__(self, url: str, failing: Callable[[], AbstractContextManager[None]] = as_source_error) -> None:
        self._failing = failing
        with failing():
            self._connection = connect(url)
            try:
                self._connection.query(_ISOLATION)
                self._connection.query(_SESSION)
            except pymysql.Error:
                self._connection.close()
                raise
            self._connection.decoders = {}  # texts, as the server writes them

    def begin(self) -> BinlogPlace:
        """Begins, in place of an earlier snapshot, and returns the place: the snapshot has what committed before it.

        Raises:
            SourceError: the server is no MariaDB, has no binlog, or is away.
        """
        self.begin_anywhere()
        found = {str(name).lower(): value for name, value in self.found(_PLACE)}
        file, position = found.get("binlog_snapshot_file"), found.get("binlog_snapshot_position")
        if not file or position is None:
            raise SourceError(
                "the source does not say where a snapshot stands in its binlog (Binlog_snapshot_position): it is no"
                " MariaDB, or has no binlog"
            )
        return BinlogPlace(str(file), int(position))

    def begin_anywhere(self) -> None:
        """Begins, in place of an earlier snapshot, also on a server without a binlog; raises as :meth:`found`."""
        with self._failing():
            self._connection.rollback()
            self._connection.query(_BEGIN)

    def hold(self, tables: Sequence[str]) -> None:
        """Keeps others from altering tables that the snapshot sees.

        Raises:
            SourceError: one was altered since the snapshot was made, or somebody alters it for too long.
        """
        for table in tables:
            self.found(f"SELECT 1 FROM {backticked(table)} LIMIT 1")

    def found(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Returns a query's rows, as texts and bytes; raises SourceError, or what ``failing`` makes of an error."""
        with self._failing(), self._connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())

    def check(self) -> None:
        """Raises SnapshotGoneError where the session is gone."""
        try:
            self._connection.ping(reconnect=False)
        except (pymysql.Error, OSError) as error:
            raise SnapshotGoneError(str(error)) from None

    def blocks(self, query: str, spellings: Sequence[TextSpelling]) -> Iterator[bytes]:
        """Yields a query's rows, in blocks, as the text that COPY of PostgreSQL reads; as :meth:`rows` does."""
        yield from _blocks(map(_line, self.rows(query, spellings)))

    def rows(self, query: str, spellings: Sequence[TextSpelling]) -> Iterator[Sequence[str | None]]:
        """Yields a query's rows, each as the texts of its columns.

        Args:
            query: gives a text or bytes, or NULL, for each column.
            spellings: what becomes of each column's text, or bytes.

        Raises:
            SnapshotGoneError: the session is gone, or the table was altered.
        """
        special = [(place, SPELLINGS[one]) for place, one in enumerate(spellings) if one is not TextSpelling.AS_IT_IS]
        try:
            with self._connection.cursor(SSCursor) as cursor:
                cursor.execute(query)
                yield from (_spelled(row, special) for row in cursor) if special else cursor
        except pymysql.Error as error:
            if error.args and error.args[0] in _LOST | _ALTERED:
                raise SnapshotGoneError(str(error.args[-1])) from None
            raise

    def close(self) -> None:
        if self._connection.open:
            self._connection.close()


def _blocks(lines: Iterable[str]) -> Iterator[bytes]:
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= BLOCK:
            yield "".join(block).encode()
            block, size = [], 0
    yield "".join(block).encode()


def _spelled(row: Sequence[Any], special: Sequence[tuple[int, Callable[[Any], str]]]) -> Sequence[str | None]:
    values = list(row)
    for place, spell in special:
        if (text := values[place]) is not None:
            values[place] = spell(text)
    return values


def _line(row: Sequence[str | None]) -> str:
    """Returns a row as a line of COPY."""
    return "\t".join(["\\N" if text is None else text.translate(_ESCAPED) for text in row]) + "\n"


_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
