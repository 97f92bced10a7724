"""The log as a table: a row for each unit of work, with all columns of the log's model.

What entries do to a unit is :mod:`kainite.log.state.units`; this view adds the columns that come from the
entries' data. docs/operations.md, *Looking*, says what the columns mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, starmap

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogHead, LogStore
from kainite.log.format.deltas import delta_items
from kainite.log.format.entry import Batch, Entry, EntryKind, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.chains import named
from kainite.log.state.loading import load_state, read_from_low
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.outcomes import outcomes_of, stored_batches
from kainite.log.state.unit_state import UnitState
from kainite.log.views.unit_times import TimedUnits, UnitTimes

UNREADABLE = "deltas that cannot be read"
"""Shown in place of the signatures of deltas that cannot be read."""

COLLECTING = "collecting"
"""Shown as the status of a unit that is not complete: the unit is not dispatched yet."""


@dataclass(slots=True)
class LogRow:
    """One unit of work.

    ``signature``, ``trans_in`` and ``offending`` are empty where only the log's index was read.

    Attributes:
        conflict: transaction id of the unresolved unit that it conflicted with when it was dispatched, as far as the
            log goes back.
        id: the unit's transaction id; None while the unit is being collected.
        uow: the unit's name.
        queue: the shards that its deltas came through.
        instance: the job instance that applied it.
        signature: the target tables and keys that it writes, ``table(key, …)``.
        trans_in: how many deltas its source announced; None before the end has come.
        trans_out: how many deltas have been collected.
        status: as :class:`~kainite.log.format.entry.UnitStatus` has it, or ``collecting``.
        number: the source's own dense number.
        kind: normal, correction or reversal.
        cause: why the unit failed, what it waits for, or who decided.
        offending: the emitted line that was no delta.
        source_ms, arrived_ms, collected_ms, dispatched_ms, applied_ms: the times at which the unit was committed at the
            source, arrived, was collected, dispatched and applied (:mod:`kainite.log.views.unit_times`); None where a
            time is not known.
    """

    uow: str
    conflict: int | None = None
    id: int | None = None
    queue: list[str] = field(default_factory=list)
    instance: int | None = None
    signature: list[str] = field(default_factory=list)
    trans_in: int | None = None
    trans_out: int = 0
    status: str = COLLECTING
    number: int | None = None
    kind: str = "normal"
    cause: str | None = None
    offending: str | None = None
    source_ms: int | None = None
    arrived_ms: int | None = None
    collected_ms: int | None = None
    dispatched_ms: int | None = None
    applied_ms: int | None = None

    @property
    def tables(self) -> set[str]:
        return {signature.partition("(")[0] for signature in self.signature}

    @property
    def heard_ms(self) -> int | None:
        """Returns when its latest record arrived, or else when the source committed it; None where nothing tells."""
        return self.arrived_ms if self.arrived_ms is not None else self.source_ms

    @property
    def took_s(self) -> float | None:
        """Returns the seconds from the arrival on the stream to the target's commit; None if a time is unknown."""
        if self.arrived_ms is None or self.applied_ms is None:
            return None
        return (self.applied_ms - self.arrived_ms) / 1000

    def age_s(self, now_ms: int) -> float | None:
        """Returns the seconds since the unit was first heard of; None for one that is resolved, or without any time.

        Args:
            now_ms: the present time, milliseconds since the epoch.
        """
        times = (self.source_ms, self.arrived_ms, self.collected_ms, self.dispatched_ms)
        first = min((time for time in times if time is not None), default=None)
        resolved = self.status in (UnitStatus.COMMITTED, UnitStatus.DISCARDED)
        return None if resolved or first is None else max(0, now_ms - first) / 1000


@dataclass(slots=True)
class _Dispatched:
    """The columns of a dispatched unit that the fold does not hold."""

    signature: list[str]
    trans_in: int | None
    offending: str | None

    def add(self, entry: Entry, late: FragmentMeta) -> None:
        """Adds the parts that came after the unit had failed."""
        self.signature.extend(signatures(entry))
        if self.trans_in is None and late.end is not None:
            self.trans_in = late.end.count
        self.offending = self.offending or late.offending


class UnitTable:
    """Folds entries, with their data, into rows.

    Attributes:
        through: the id up to which the entries hold the outcomes of the apply job; None when none of them says so.
    """

    def __init__(self) -> None:
        self.through: int | None = None
        self._units = TimedUnits()
        self._fold = self._units.fold
        self._open: dict[str, list[str]] = {}
        self._dispatched: dict[int, _Dispatched] = {}

    def rows(self, last: int | None = None) -> Iterator[LogRow]:
        """Yields dispatched units by transaction id, then the units that are being collected; at most the last ones."""
        units, collecting = self._fold.units, self._fold.open
        left_out = 0 if last is None else max(0, len(units) + len(collecting) - last)
        yield from starmap(self._row, islice(units.items(), left_out, None))
        for uow, opened in islice(collecting.items(), max(0, left_out - len(units)), None):
            yield open_row(opened, self._open[uow], self._units.of_open(uow))

    def dispatched(self, below: float = math.inf) -> Iterator[LogRow]:
        """Yields the dispatched units whose transaction ids are lower than ``below``, in order."""
        return (self._row(tid, unit) for tid, unit in self._fold.units.items() if tid < below)

    def _row(self, tid: int, unit: UnitState) -> LogRow:
        row, more = dispatched_row(unit, self._units), self._dispatched[tid]
        return replace(row, signature=more.signature, trans_in=more.trans_in, offending=more.offending)

    def first_entry_of(self, rows: Sequence[LogRow]) -> float:
        """Returns the lowest id of an entry that dispatched units among ``rows`` consist of; infinity without one."""
        ids = (self._fold.units[row.id].first_tid for row in rows if row.id is not None)
        return min(ids, default=math.inf)

    def take(self, batch: Batch, first_id: int) -> None:
        """Applies a batch's entries from ``first_id`` on."""
        for tid, entry in batch.entries_from(first_id):
            self.apply(tid, entry, batch.time_ms)

    def is_late(self, entry: Entry) -> bool:
        """Tells whether an entry brings deltas to a unit that is dispatched, and so to its row."""
        return isinstance(entry.meta, FragmentMeta) and entry.meta.uow in self._fold.late

    def apply(self, tid: int, entry: Entry, time_ms: int) -> None:
        """Applies one entry; arguments as :meth:`~kainite.log.state.units.UnitFold.apply`."""
        match entry.meta:
            case FragmentMeta(uow=uow) as late if uow in self._fold.late:
                self._dispatched[self._fold.late[uow]].add(entry, late)
            case FragmentMeta(uow=uow):
                self._open.setdefault(uow, []).extend(signatures(entry))
            case UnitMeta() as meta:
                self._dispatched[tid] = self._dispatch(entry, meta)
            case StatusMeta(through=int() as through):
                self.through = through
        self._units.apply(tid, entry, time_ms)

    def settle(self, outcomes: tuple[Outcome, ...]) -> None:
        """Applies outcomes that are in no entry of the log yet."""
        status = Entry(EntryKind.STATUS, StatusMeta(outcomes))
        self._units.apply(-1, status, 0)

    def _dispatch(self, entry: Entry, meta: UnitMeta) -> _Dispatched:
        signature = self._open.pop(meta.uow, []) + signatures(entry)
        opened = self._fold.open.get(meta.uow)
        announced = opened.end.count if opened and opened.end else None
        # A sound unit has as many deltas as its end announced; the UNIT entry of another repeats only those that came.
        return _Dispatched(signature, announced if meta.cause else meta.count, meta.offending)


def dispatched_row(unit: UnitState, units: TimedUnits) -> LogRow:
    """Returns the row of a dispatched unit, with the columns that the log's index has."""
    return LogRow(
        uow=unit.uow,
        conflict=units.conflict_of(unit.tid),
        id=unit.tid,
        queue=list(unit.shards),
        instance=unit.instance,
        trans_out=unit.count,
        status=unit.status.value,
        number=unit.number,
        kind=unit.kind.value,
        cause=named(unit.cause, units.units),
        **asdict(units.of(unit.tid)),
    )


def open_row(unit: OpenUnit, signature: list[str], times: UnitTimes) -> LogRow:
    """Returns the row of a unit that is being collected; ``signature`` is empty where only the index was read."""
    return LogRow(
        uow=unit.uow,
        queue=unit.shards,
        signature=signature,
        trans_in=None if unit.end is None else unit.end.count,
        trans_out=unit.count,
        number=unit.number,
        kind=unit.kind,
        cause="; ".join(unit.causes) or _awaited(unit),
        offending=unit.offending,
        **asdict(times),
    )


def read_rows(store: LogStore, partition: str, first_id: int | None = None) -> list[LogRow]:
    """Returns all rows from ``first_id``, or from the log's low-water mark, to the tail, as the log alone has them.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    return list(_read_table(store, partition, first_id).rows())


def read_rows_between(store: LogStore, partition: str, low: int, high: int) -> list[LogRow]:
    """Returns the rows of the units with ids from ``low`` to ``high`` - 1, with their status at the log's tail.

    Of the entries from ``high`` on only the index is read, which has all statuses; the deltas are read too if some of
    them came late for a unit that had failed.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    table, following = UnitTable(), low
    for batch in store.read_batches(partition, low, high - 1, strong=True):
        table.take(batch, low)
        following = batch.last_id + 1
    for index in store.read_batches(partition, following, data=False, strong=True):
        late = any(map(table.is_late, index.entries))
        for batch in store.read_batches(partition, index.first_id, index.last_id, strong=True) if late else (index,):
            table.take(batch, following)
    return list(table.dispatched(high))


def read_present_rows(store: LogStore, partition: str, head: LogHead | None = None) -> list[LogRow]:
    """Returns all rows, with the outcomes that the owner has not copied into the log yet: it may not be running.

    The outcomes are read first. So the log may have some of them already, and no outcome is missed that was truncated
    because the owner had copied it meanwhile.

    Args:
        store, partition: the log.
        head: the partition's head, where it has just been read.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    outcomes = stored_batches(store, partition)
    table = _read_table(store, partition, head=head)
    if outcomes:
        through = load_state(store, partition).through if table.through is None else table.through
        table.settle(outcomes_of(outcomes, through + 1))
    return list(table.rows())


def _read_table(store: LogStore, partition: str, first_id: int | None = None, head: LogHead | None = None) -> UnitTable:
    def read(low: int) -> UnitTable:
        table = UnitTable()
        for batch in store.read_batches(partition, low, strong=True):
            table.take(batch, low)
        return table

    return read_from_low(store, partition, read, head) if first_id is None else read(first_id)


def signatures(entry: Entry) -> list[str]:
    """Returns ``table(key)`` of each delta of an entry, each once, in order; UNREADABLE for deltas that cannot be read.

    A unit with such deltas fails when the apply job tries it; it must not keep the log from being shown, audited and
    truncated.
    """
    try:
        shown = [
            f"{delta['table']}({', '.join(str(value) for value in delta.get('key', {}).values())})"
            for delta in delta_items(entry)
        ]
    except (LogCorruptError, LookupError, TypeError, AttributeError):
        return [UNREADABLE]
    return list(dict.fromkeys(shown))


def _awaited(unit: OpenUnit) -> str | None:
    """Returns why a complete unit is not dispatched yet; None for one that is not complete."""
    return f"complete; the units with lower numbers than {unit.number} go first" if unit.complete else None
