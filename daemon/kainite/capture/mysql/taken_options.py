"""Which options of an extraction hold from a place on, and since when each table is read without a gap; pure.

``--table`` and ``--truncate`` decide which changes a unit has. A process that begins with others than its offset notes
must not give a transaction again that a killed process has put on the stream, and not yet in the offset, with other
changes than before. So options change at one transaction boundary::

    offset's options ──► end of the binlog as the process found it ──► offset with the new options, stored ──► new ones

Invariant: whatever was put on the stream behind the stored offset was put under the options that the offset notes.

* What a process before has put was in the binlog when this process began, so it lies before the boundary.
* The offset with the new options is an answer of its own, behind which nothing is asked before it is stored.

A crash before that offset is stored leaves the former options; the next process takes a later boundary. A crash behind
it leaves the new ones. The offset with which a person begins notes none: they are stored before anything is given.

A table whose changes are left out for a while, and given again, has a gap. So the offset notes for each table the
number *since* which it is read: all transactions with a higher number were given with its changes. A copy of the table
that lacks one of the others is worth nothing (:mod:`kainite.replicate.binlog_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.truncate import OnTruncate

OTHERS: Final = ""
"""Stands for all tables that have no number of their own, where all of the database are read."""


@dataclass(frozen=True, slots=True)
class TakenOptions:
    """The options that hold from an offset on.

    Attributes:
        since: the tables that are read, each with the number of the last transaction of which its changes may be
            missing; :data:`OTHERS` for all others.
        on_truncate: what TRUNCATE does.
    """

    since: Mapping[str, int]
    on_truncate: OnTruncate

    @classmethod
    def begun(cls, tables: Collection[str], on_truncate: OnTruncate, number: int) -> Self:
        """Returns options that hold behind a transaction's number, where nothing was read before.

        Args:
            tables: the tables that are read; all where there are none.
            on_truncate: what TRUNCATE does.
            number: of the last transaction before.
        """
        return cls(dict.fromkeys(tables or (OTHERS,), number), on_truncate)

    @property
    def tables(self) -> tuple[str, ...]:
        """Returns the tables that are read; empty: all of the database."""
        return () if OTHERS in self.since else tuple(self.since)

    def are(self, tables: Collection[str], on_truncate: OnTruncate) -> bool:
        """Tells whether these options are held."""
        return (set(self.tables), self.on_truncate) == (set(tables), on_truncate)

    def followed(self, tables: Collection[str], on_truncate: OnTruncate, number: int) -> TakenOptions:
        """Returns the options that hold in place of these behind a transaction's number; arguments as ``begun``."""
        if tables:
            return TakenOptions({name: self._since(name, number) for name in tables}, on_truncate)
        return TakenOptions({**self.since, OTHERS: self.since.get(OTHERS, number)}, on_truncate)

    def read_since(self, tables: Collection[str]) -> int | None:
        """Returns the number of the last transaction of which changes of tables may be missing.

        Args:
            tables: which; all where there are none.

        Returns:
            None where one of them is not read.
        """
        if not tables:
            return max(self.since.values()) if OTHERS in self.since else None
        found = [self._since(name, -1) for name in tables]
        return None if -1 in found else max(found)

    def _since(self, table: str, otherwise: int) -> int:
        return self.since.get(table, self.since.get(OTHERS, otherwise))

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Reads the result of :meth:`as_json`; raises KeyError, TypeError, AttributeError or ValueError for others."""
        return cls({str(name): int(at) for name, at in value["tables"].items()}, OnTruncate(value["truncate"]))

    def as_json(self) -> dict[str, Any]:
        return {"tables": dict(self.since), "truncate": self.on_truncate.value}


class OptionsInForce:
    """The options of a process: those that its offset notes, and its own from the boundary on.

    Args:
        tables: its own ``--table``.
        on_truncate: its own ``--truncate``.

    Attributes:
        options: those that hold, as the latest offset notes them; None where that notes none.
    """

    def __init__(self, tables: Collection[str], on_truncate: OnTruncate) -> None:
        self.options: TakenOptions | None = None
        self._tables = tables
        self._on_truncate = on_truncate
        self._boundary: BinlogPlace | None = None

    def begin(self, noted: TakenOptions | None, end: Callable[[], BinlogPlace]) -> None:
        """Takes the options of the offset at which the process begins.

        Args:
            noted: its options.
            end: returns the end of the binlog.
        """
        self.options = noted
        if noted is not None and self._is_to_change:
            self._boundary = end()

    @property
    def tables(self) -> Collection[str]:
        """Returns the tables that are read; all where there are none."""
        return self._tables if self.options is None else self.options.tables

    @property
    def on_truncate(self) -> OnTruncate:
        """Returns what TRUNCATE does."""
        return self._on_truncate if self.options is None else self.options.on_truncate

    def change_at(self, place: BinlogPlace | None) -> bool:
        """Tells whether the process's own options are to hold from a place on, between two transactions."""
        reached = self._boundary is None or (place is not None and not place.is_before(self._boundary))
        return self._is_to_change and reached

    def change(self, number: int) -> None:
        """Takes the process's own options behind a transaction's number; the caller has them stored before more."""
        own = self._tables, self._on_truncate, number
        self.options = TakenOptions.begun(*own) if self.options is None else self.options.followed(*own)

    @property
    def _is_to_change(self) -> bool:
        return self.options is None or not self.options.are(self._tables, self._on_truncate)
