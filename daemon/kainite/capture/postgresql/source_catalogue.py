"""Asks the source's catalogue for facts that the replication stream lacks: the publication, and primary keys.

A publication that does not exist, or that has lost a table, sends nothing, and says nothing. So it is looked up before
the slot is read, each :data:`LOOK_EVERY_S` seconds, and when the stream describes a table anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from kainite.base.errors import SourceError
from kainite.base.redaction import learn, redacted, secrets_in_url
from kainite.capture.postgresql.records import SourceKey
from kainite.capture.postgresql.replication_frames import parse_lsn
from kainite.capture.postgresql.source_reach import SESSION_NAME, reached_by

LOOK_EVERY_S: Final = 10.0
"""Seconds between two looks at the publication: so long may a table's changes be missing before that is told."""

_PUBLICATION: Final = """
SELECT pubinsert AND pubupdate AND pubdelete FROM pg_publication WHERE pubname = %s
"""
_TABLES: Final = """
SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s
"""
_STILL_THERE: Final = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = ANY(%s)
"""
_SLOT: Final = """
SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
                       restart_lsn)::bigint, safe_wal_size
FROM pg_replication_slots WHERE slot_name = %s
"""
_CONFIRMED: Final = """
SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s
"""
_KEY: Final = """
SELECT ARRAY(SELECT a.attname::text FROM pg_index i
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
             WHERE i.indrelid = c.oid AND i.indisprimary), c.relkind = 'p',
       (SELECT min(format('%%I.%%I', n.nspname, l.relname)) FROM pg_partition_tree(c.oid) t
        JOIN pg_class l ON l.oid = t.relid JOIN pg_namespace n ON n.oid = l.relnamespace
        WHERE c.relkind = 'p' AND t.isleaf AND l.relreplident = 'i' AND NOT EXISTS (
            SELECT FROM pg_index i, pg_index p
            WHERE i.indrelid = l.oid AND i.indisreplident AND p.indrelid = l.oid AND p.indisprimary
              AND p.indkey::int2[] <@ i.indkey::int2[]))
FROM pg_class c WHERE c.oid = %s
"""


@dataclass(frozen=True, slots=True)
class SlotWal:
    """The WAL of a slot, bytes; None for what the server does not tell.

    Attributes:
        held: what the server keeps for the slot.
        left: what it will still write before it invalidates the slot (max_slot_wal_keep_size).
    """

    held: int | None
    left: int | None


class SourceCatalogue:
    """The catalogue of a source database, over a connection of its own.

    Args:
        url: the database.
        publication: the publication's name.
        expected: tables, as ``schema.table``, that the publication must have.
        clock: seconds, by a clock that never runs backwards.

    Raises:
        SourceError: the database cannot be reached.
    """

    def __init__(
        self,
        url: str,
        publication: str,
        expected: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._publication = publication
        self._expected = frozenset(expected)
        self._clock = clock
        self._published: frozenset[str] = frozenset()
        self._keys: dict[int, SourceKey] = {}
        self._look_at = 0.0
        learn(secrets_in_url(url))
        with _as_source_error():
            self._connection = psycopg.connect(
                reached_by(url, application_name=SESSION_NAME), autocommit=True, client_encoding="UTF8"
            )

    def look(self, *, soon: bool = False) -> None:
        """Looks at the publication, if the last look is long enough ago.

        Args:
            soon: looks at once: something about a table has changed.

        Raises:
            SourceError: the publication is not there, does not publish all changes of rows, has no table, lacks a table
                that is expected, or has lost one that still exists.
        """
        now = self._clock()
        if not soon and now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        self._check_publication()
        published = frozenset(row[0] for row in self._rows(_TABLES, self._publication))
        if lacking := sorted((self._expected or published) - published):
            raise SourceError(self._lacking(lacking))
        if not published:
            raise SourceError(
                f"publication {self._publication} has no table: no change would come; ALTER PUBLICATION"
                f" {self._publication} ADD TABLE …"
            )
        if left := self._published - published:
            self._check_left(sorted(left))
        self._published = published

    def slot_wal(self, slot: str) -> SlotWal:
        """Returns how much WAL the server keeps for a slot.

        Raises:
            SourceError: the database cannot be asked.
        """
        for held, left in self._rows(_SLOT, slot):
            return SlotWal(held, None if left is None else max(left, 0))
        return SlotWal(None, None)

    def confirmed(self, slot: str) -> int:
        """Returns the LSN up to which a slot has acknowledged everything.

        Raises:
            SourceError: the slot is not there, or the database cannot be asked.
        """
        for (lsn,) in self._rows(_CONFIRMED, slot):
            return parse_lsn(lsn)
        raise SourceError(f"replication slot {slot} does not exist any more")

    def key(self, relation_oid: int) -> SourceKey:
        """Returns a table's primary key as the catalogue has it now; an empty one where the table is gone.

        The answer is remembered until :meth:`forget_key`.
        """
        if relation_oid not in self._keys:
            self._keys[relation_oid] = SourceKey()
            for columns, partitioned, silent in self._rows(_KEY, relation_oid):
                self._keys[relation_oid] = SourceKey(frozenset(columns), partitioned, silent)
        return self._keys[relation_oid]

    def forget_key(self, relation_oid: int) -> None:
        """Asks for a table's primary key anew the next time: the stream has described the table anew."""
        self._keys.pop(relation_oid, None)

    def close(self) -> None:
        self._connection.close()

    def _check_publication(self) -> None:
        found = self._rows(_PUBLICATION, self._publication)
        if not found:
            # Creating it now would not bring back what was committed without it: the WAL is decoded with the
            # catalogue of its time, and there the publication is missing.
            raise SourceError(
                f"publication {self._publication} does not exist on the source: changes that commit without it are"
                f" never sent. Before the first extraction: CREATE PUBLICATION {self._publication} FOR ALL TABLES;"
                " later: create it, copy the tables again, and begin with a new slot"
            )
        if not found[0][0]:
            raise SourceError(
                f"publication {self._publication} does not publish all of insert, update and delete: ALTER PUBLICATION"
                f" {self._publication} SET (publish = 'insert, update, delete, truncate')"
            )

    def _check_left(self, left: list[str]) -> None:
        """Raises SourceError where a table has left the publication, and not because it was dropped."""
        if lost := sorted(row[0] for row in self._rows(_STILL_THERE, left)):
            raise SourceError(self._lacking(lost))

    def _lacking(self, tables: list[str]) -> str:
        names = ", ".join(tables)
        return (
            f"publication {self._publication} lacks {names}: changes of it are not sent, and are missing without a gap;"
            f" ALTER PUBLICATION {self._publication} ADD TABLE {names}, then copy what changed meanwhile"
        )

    def _rows(self, query: str, value: object) -> list[tuple[Any, ...]]:
        with _as_source_error():
            return self._connection.execute(query, [value]).fetchall()


@contextmanager
def _as_source_error() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise SourceError(f"the source's catalogue cannot be read: {redacted(' '.join(str(error).split()))}") from None
