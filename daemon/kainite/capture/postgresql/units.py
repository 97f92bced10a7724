"""Turns changes into the records of numbered units of work; a state machine without I/O.

States: *between* transactions, or *inside* one, of which so many changes have been given. Nothing of a transaction is
held: its name, its time and its number are known at its beginning.

Invariants:

* A transaction has a number if the source sends a change or a heartbeat for it, whatever the options are. So a restart
  with other options gives each transaction the number that it had.
* ``ordinal`` is a change's place in its transaction, and ``count`` the number of its changes, with TRUNCATE only where
  that is applied. So a transaction that is sent again after a restart from ``fail`` to ``skip``, or back, gives the
  same deltas and the same end; from or to ``apply`` it may give another end, and its unit then fails visibly.
* A number counts when its unit's end is given: whoever goes on from there has all of the unit.

==========================  =========================================================================================
a transaction               becomes
==========================  =========================================================================================
without changes             nothing
a heartbeat                 an end with count 0 (:mod:`kainite.capture.postgresql.heartbeat`)
with changes                a record a change, and an end
with TRUNCATE               the same. ``fail``: TRUNCATE's record fails the unit. ``skip``: it has no record; a
                            transaction of nothing else becomes an end with count 0. ``apply``: it has a record for
                            each of its tables, and counts
that is passed over         one record that fails the unit with this reason, and an end with count 0
==========================  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from kainite.capture.postgresql.pgoutput import TruncateMessage
from kainite.capture.postgresql.records import SourceKeyOf, change_record
from kainite.capture.postgresql.transactions import SourceChange, SourceTransaction
from kainite.capture.row_pieces import in_records
from kainite.capture.truncate import OnTruncate


@dataclass(slots=True)
class _OpenUnit:
    """A transaction that is being given.

    Attributes:
        transaction: the transaction.
        changes: how many changes the source has sent.
        truncates: how many of them are TRUNCATE of a table that is not applied.
        passed_over: whether the transaction is passed over.
        heartbeat: whether it has a heartbeat.
    """

    transaction: SourceTransaction
    passed_over: bool
    heartbeat: bool = False
    changes: int = 0
    truncates: int = 0


@dataclass(frozen=True, slots=True)
class GivenUnit:
    """A transaction whose unit is given.

    Attributes:
        transaction: the transaction.
        end_lsn: the LSN behind it.
        changes: how many changes the source has sent.
        end: the record of the unit's end.
    """

    transaction: SourceTransaction
    end_lsn: int
    changes: int
    end: bytes


class NumberedUnits:
    """Gives transactions, one after the other.

    Args:
        number: the number of the last transaction before.
        key_of: asked for the tables' primary keys.
        on_truncate: what TRUNCATE does.
        clock: nanoseconds since the epoch.

    Attributes:
        number: the number of the last transaction that is given.
    """

    def __init__(self, number: int, key_of: SourceKeyOf, on_truncate: OnTruncate, clock: Callable[[], int]) -> None:
        self.number = number
        self._key_of = key_of
        self._on_truncate = on_truncate
        self._clock = clock
        self._open: _OpenUnit | None = None

    @property
    def begun(self) -> bool:
        """Tells whether records of a transaction may have been given, and not its end."""
        return self._open is not None and self._open.changes > 0

    def begin(self, transaction: SourceTransaction, *, passed_over: bool = False) -> None:
        """Takes the beginning of a transaction."""
        self._open = _OpenUnit(transaction, passed_over)

    def pass_change(self) -> Iterator[bytes]:
        """Takes a change of a transaction that is passed over; yields the record that fails its unit, once."""
        assert self._open is not None
        self._open.changes += 1
        if self._open.changes == 1:
            yield orjson.dumps({**self._unit(), "refused": "the transaction was passed over (--skip-transaction)"})

    def change(self, change: SourceChange) -> Iterator[bytes]:
        """Takes a change; yields its records.

        Raises:
            SourceError: the source's catalogue cannot be asked, or the change does not fit its table.
        """
        assert self._open is not None
        ordinal = self._open.changes
        self._open.changes += 1
        applied = self._on_truncate is OnTruncate.APPLY
        if isinstance(change.row, TruncateMessage) and not applied:
            self._open.truncates += 1
            if self._on_truncate is OnTruncate.SKIP:
                return
        unit = self._unit()
        record = change_record(unit, ordinal, change, self._key_of, truncates=applied)
        yield from in_records(unit, *record, self._clock)

    def heartbeat(self) -> None:
        """Takes a heartbeat of a transaction."""
        assert self._open is not None
        self._open.heartbeat = True

    def commit(self, end_lsn: int) -> GivenUnit | None:
        """Takes the end of the transaction; returns the end of its unit, None where it has no number."""
        given, end = self._open, self._unit()
        assert given is not None
        self._open = None
        if not given.changes and not given.heartbeat:
            return None
        self.number += 1
        count = 0 if given.passed_over else given.changes - given.truncates
        end |= {"end": True, "count": count, "time": given.transaction.commit_us * 1000}
        return GivenUnit(given.transaction, end_lsn, given.changes, orjson.dumps(end))

    def _unit(self) -> dict[str, Any]:
        assert self._open is not None
        return {"uow": self._open.transaction.uow, "number": self.number + 1}
