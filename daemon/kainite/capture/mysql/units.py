"""Turns changes into the records of numbered units of work; a state machine without I/O.

The binlog has what a transaction rolled back, too: MariaDB writes ``ROLLBACK`` and ``ROLLBACK TO`` behind changes of a
transaction that made a temporary table. So the records of a transaction are held until its end, as long as they have
:data:`HELD_BYTES` at most. A larger one is given as it comes, and fails its unit where it rolls anything back.

States: *between* transactions; *holding* one; *giving* one, whose records are given as they come.

Invariants:

* A transaction has a number if it changes rows of the database that is read, or empties a table there: whatever the
  options are, whether the table is read, and whether the changes were rolled back. So a restart with other options
  gives each transaction the number that it had.
* ``ordinal`` counts all these changes, and ``count`` those that are given.
* A number counts when its unit's end is given: whoever goes on from there has all of the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import orjson

from kainite.capture.row_pieces import in_records

HELD_BYTES: Final = 8 * 2**20
"""Bytes of a transaction's records that are held until it has ended."""

ChangeRecord: TypeAlias = Callable[[Mapping[str, Any], int], tuple[dict[str, Any], dict[str, Any]]]
"""Returns a change's record in two parts, by its unit and its ordinal."""

_PASSED_OVER: Final = "the transaction was passed over (--skip-transaction)"


@dataclass(frozen=True, slots=True)
class _SavepointMark:
    """How much of a transaction there was at a savepoint."""

    records: int
    counted: int


@dataclass(slots=True)
class _HeldUnit:
    """A transaction that is being read.

    Attributes:
        gtid: its name.
        passed_over: whether it fails its unit instead of being read.
        changes: how many changes the source has sent.
        counted: how many of them are given.
        held: their records; None where these are given as they come.
        refused: whether a record has failed the unit.
    """

    gtid: str
    passed_over: bool
    changes: int = 0
    counted: int = 0
    held: list[bytes] | None = field(default_factory=list)
    size: int = 0
    savepoints: dict[str, _SavepointMark] = field(default_factory=dict)
    refused: bool = False


@dataclass(frozen=True, slots=True)
class GivenTransaction:
    """A transaction whose unit is given.

    Attributes:
        uow: the unit's name.
        time: when it committed, seconds since the epoch.
        changes: how many changes are given.
    """

    uow: str
    time: int
    changes: int


class HeldUnits:
    """Gives transactions, one after the other.

    Args:
        number: the number of the last transaction before.
        clock: nanoseconds since the epoch.
        held: bytes of a transaction that are held.

    Attributes:
        number: the number of the last transaction that is given.
    """

    def __init__(self, number: int, clock: Callable[[], int], held: int = HELD_BYTES) -> None:
        self.number = number
        self._clock = clock
        self._held = held
        self._open: _HeldUnit | None = None

    @property
    def begun(self) -> bool:
        """Tells whether records of a transaction may have been given, and not its end."""
        return self._open is not None and self._open.held is None

    def begin(self, gtid: str, *, passed_over: bool = False) -> None:
        """Takes the beginning of a transaction."""
        self._open = _HeldUnit(gtid, passed_over)

    @property
    def passed_over(self) -> bool:
        """Tells whether the transaction is passed over: its changes need not be read."""
        return self._current.passed_over

    def change(self, record: ChangeRecord | None) -> Iterator[bytes]:
        """Takes a change; yields the records that are to be given now.

        Args:
            record: makes its record; None for a change that gets none.
        """
        one = self._current
        ordinal = one.changes
        one.changes += 1
        if record is None or one.passed_over:
            return
        one.counted += 1
        unit = self._unit()
        yield from self._kept(in_records(unit, *record(unit, ordinal), self._clock))

    def refuse(self, reason: str) -> Iterator[bytes]:
        """Takes what fails the unit; yields the records that are to be given now."""
        one = self._current
        one.changes += 1
        if not one.refused and not one.passed_over:
            one.refused = True
            yield from self._kept(iter([orjson.dumps({**self._unit(), "refused": reason})]))

    def savepoint(self, name: str) -> None:
        """Takes a savepoint."""
        one = self._current
        if one.held is not None:
            one.savepoints[name] = _SavepointMark(len(one.held), one.counted)

    def roll_back_to(self, name: str) -> Iterator[bytes]:
        """Takes what undoes the changes behind a savepoint; yields the records that are to be given now."""
        one = self._current
        mark = one.savepoints.get(name)
        if one.held is not None and mark is not None:
            del one.held[mark.records :]
            one.counted = mark.counted
        elif one.changes:
            yield from self.refuse("a large transaction rolled back to a savepoint: its changes were given before")

    def end(self, time: int, *, rolled_back: bool = False) -> Iterator[bytes | GivenTransaction]:
        """Takes the end of a transaction; yields its records, and what was given, where it has a number."""
        one = self._current
        if rolled_back and one.held is None:
            yield from (record for record in self.refuse("a large transaction was rolled back: its changes were given"))
        elif rolled_back:
            one.held, one.counted = [], 0
        if one.passed_over and one.changes:
            one.held = [orjson.dumps({**self._unit(), "refused": _PASSED_OVER})]
        unit = self._unit()
        self._open = None
        if not one.changes:
            return
        self.number += 1
        yield from one.held or ()
        end = {**unit, "end": True, "count": one.counted, "time": time * 1_000_000_000}
        yield orjson.dumps(end)
        yield GivenTransaction(unit["uow"], time, one.counted)

    def drop(self) -> None:
        """Takes the end of a transaction that is prepared alone: it gets its number when it commits."""
        self._open = None

    @property
    def _current(self) -> _HeldUnit:
        assert self._open is not None
        return self._open

    def _kept(self, records: Iterator[bytes]) -> Iterator[bytes]:
        """Holds records, or yields them and what was held before, where they are too large."""
        one = self._current
        for record in records:
            if one.held is None:
                yield record
                continue
            one.held.append(record)
            one.size += len(record)
            if one.size > self._held:
                yield from one.held
                one.held = None

    def _unit(self) -> dict[str, Any]:
        return {"uow": f"my-{self._current.gtid}-{self.number + 1}", "number": self.number + 1}
