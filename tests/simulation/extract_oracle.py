"""The oracle of an extraction: what must be on the stream when, and that nothing else is; shares no code with Kainite.

* Each message is one of a transaction that has committed in the source: a change, in its place and with its values, or
  the end with the number of its changes; under the transaction's number, which says its place among the commits. So a
  message that comes again says the same as before.
* No message is put before all messages of the transactions before it, and those before it in its own, are on the
  stream, or are put with it; what is put together is in the order of the commits.
* A place that is stored, and an LSN to which the slot is moved, have only such transactions before them as are whole on
  the stream; neither goes back, and the slot is never moved beyond the stored place.
* In the end every transaction is on the stream, whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from simulation.extract_history import KEPT, Change, Column, Values
from simulation.extract_source import FIRST_LSN, SimSource
from simulation.extract_wire import Committed, lsn_of


class ExtractOracle:
    """Looks at each message that is put, and at each place that is stored or confirmed.

    Args:
        broken: is told what is wrong.

    Attributes:
        source: whose transactions are extracted.
        stored: the places that were stored in each offset file, in their order.
    """

    source: SimSource

    def __init__(self, broken: Callable[[str], None]) -> None:
        self._broken = broken
        self.stored: dict[Path, list[dict[str, Any]]] = {}
        self._there: dict[str, set[int]] = {}
        self._whole = 0
        self._expected: dict[str, tuple[Committed, list[dict[str, Any]]]] = {}

    def on_stream(self, message: bytes) -> None:
        """Judges a message that is on the stream now."""
        found = self._judged(message)
        if found is not None:
            self._there.setdefault(found[0], set()).add(found[1])

    def puts(self, messages: Sequence[bytes]) -> None:
        """Judges messages that are about to be put together."""
        found = [one for one in map(self._judged, messages) if one is not None]
        places = [(self.source.numbers[name], place) for name, place in found]
        if places != sorted(set(places)):
            self._broken(f"messages are put together in another order than that of the commits: {places}")
        if not places:
            return
        number, place = places[0]
        before = set(range(place)) - self._there.get(found[0][0], set())
        if before or self.whole < number - 1:
            lacking = f"{len(before)} messages before it" if before else f"unit {self.whole + 1}"
            self._broken(f"message {place} of unit {number} is put, and {lacking} not on the stream")

    def stores(self, file: Path, place: dict[str, Any]) -> None:
        """Judges a place that is about to be stored."""
        number, lsn = place["number"], lsn_of(place["lsn"])
        before = sum(one.commit_lsn < lsn for one in self.source.units)
        if number != before:
            self._broken(f"the place {place} has {before} units before it")
        if self.whole < number:
            self._broken(f"the place {place} is stored, and unit {self.whole + 1} is not whole on the stream")
        stored = self.stored.setdefault(file, [])
        if stored and lsn < lsn_of(stored[-1]["lsn"]):
            self._broken(f"the place {place} is stored behind {stored[-1]}")
        stored.append(place)

    def confirms(self, lsn: int) -> None:
        """Judges the LSN to which the slot is about to be moved."""
        before = sum(one.commit_lsn < lsn for one in self.source.units)
        if self.whole < before:
            self._broken(f"the source may forget unit {self.whole + 1}, which is not whole on the stream")
        if lsn > self.stored_lsn:
            self._broken(f"the source may forget what is before {lsn:X}, and the stored place is {self.stored_lsn:X}")

    @property
    def stored_lsn(self) -> int:
        """Returns the stored place, in that file which has come furthest."""
        return max((lsn_of(stored[-1]["lsn"]) for stored in self.stored.values()), default=FIRST_LSN)

    @property
    def whole(self) -> int:
        """Returns the number of the last unit of those that are whole on the stream without a gap."""
        units = self.source.units
        while self._whole < len(units) and len(self._there.get(units[self._whole].name, ())) == len(
            self._records(units[self._whole])
        ):
            self._whole += 1
        return self._whole

    def missing(self, before: float) -> str | None:
        """Returns what is missing on the stream, or not confirmed, of what committed before so many seconds."""
        units = sum(one.work.at < before for one in self.source.units)
        if self.whole < units:
            return f"unit {self.whole + 1} of {units} is not whole on the stream"
        slot = self.source.server.slot
        if units and (slot is None or slot.confirmed <= self.source.units[units - 1].commit_lsn):
            return f"unit {units} is on the stream, and not confirmed to the source"
        return None

    def _judged(self, message: bytes) -> tuple[str, int] | None:
        """Returns a message's unit, and its place among the unit's messages; None where something is wrong with it."""
        found = json.loads(message)
        name = found.get("uow")
        number = self.source.numbers.get(name)
        if number is None:
            self._broken(f"{name} is put, and no such transaction has committed in the source")
            return None
        records = self._records(self.source.units[number - 1])
        place = len(records) - 1 if "end" in found else found.get("ordinal", len(records))
        if place >= len(records) or records[place] != found:
            self._broken(f"a message of {name}, which is unit {number}, is none of the unit's: {message[:300]!r}")
            return None
        return name, place

    def _records(self, one: Committed) -> list[dict[str, Any]]:
        known = self._expected.get(one.name)
        if known is None or known[0] is not one:  # a server that is promoted may use a lost transaction's name again
            known = self._expected[one.name] = one, records_of(one, self.source.numbers[one.name])
        return known[1]


def records_of(one: Committed, number: int) -> list[dict[str, Any]]:
    """Returns the messages of a transaction, in order."""
    unit = {"uow": one.name, "number": number}
    count = sum(change.kind != "truncate" for change in one.work.changes)
    changes = [{**unit, "ordinal": ordinal, "relation": f"public.{change.table.name}", "operation": change.kind,
                **_row(change)} for ordinal, change in enumerate(one.work.changes)]  # fmt: skip
    return [*changes, {**unit, "end": True, "count": count, "time": one.commit_us * 1000}]


def _row(change: Change) -> dict[str, Any]:
    if change.kind == "truncate":
        return {"refused": "TRUNCATE names no rows"}
    key = _texts(change, change.old or change.new, lambda column: column.key)
    new = _texts(change, change.new, lambda _: True)
    row: dict[str, Any] = {"key": key, "new": new}
    if change.table.full and change.old is not None:
        row["old"] = _texts(change, change.old, lambda _: True)
    told = key.keys() | new.keys() | row.get("old", {}).keys()
    return {**row, "types": {column.name: column.type_oid for column in change.table.columns if column.name in told}}


def _texts(change: Change, values: Values | None, wanted: Callable[[Column], bool]) -> dict[str, str | None]:
    if values is None:
        return {}
    return {column.name: value for column, value in zip(change.table.columns, values, strict=True)
            if value is not KEPT and wanted(column)}  # fmt: skip
