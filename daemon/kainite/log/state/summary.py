"""The log's figures in a few hundred bytes, which the owner writes into HEAD with each heartbeat.

Whoever reads HEAD so knows how many units stand in which status, and which is the oldest, without reading the log and
without asking the owner: also where the owner is dead or is not reached from this host. The figures are for people and
their programs, and for reading the end of the log alone (:mod:`kainite.log.views.latest_rows`). No decision about a
unit depends on them.

=======================  =============================================================================================
event                    the summary in HEAD
=======================  =============================================================================================
a heartbeat              is of the moment before it: what it counts may not be durable yet
a mount, a crash         stays the former owner's until the next heartbeat; ``at_ms`` tells its age
=======================  =============================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from kainite.log.format.entry import UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.operations import paused_in_words
from kainite.log.state.unit_state import UnitState

TEXT: Final = 120
"""The most characters of a name or a cause. The summary so leaves HEAD below 2 KB: two write units a heartbeat."""

MOST_SHARDS: Final = 3
"""How many shards are named, those first that are read least far."""


class UnitFigure(msgspec.Struct, frozen=True, array_like=True):
    """One unit that is not resolved.

    Attributes:
        uow: its name, shortened.
        id: its transaction id; None while it is collected.
        status: as :class:`~kainite.log.format.entry.UnitStatus` has it, or ``collecting``.
        source_ms: when the source committed it, by the source's clock; None where nothing tells.
        arrived_ms: when its latest record arrived on the stream, or where nothing tells that, when the log had its
            first part; milliseconds since the epoch. None where neither is known.
        holder: the job instance that tried it last, or the shards that it comes through.
        cause: why it stands, shortened; empty where nothing tells.
    """

    uow: str
    id: int | None
    status: str
    source_ms: int | None = None
    arrived_ms: int | None = None
    holder: str = ""
    cause: str = ""


class ShardFigure(msgspec.Struct, frozen=True, array_like=True):
    """A shard, and how far it is read into the log.

    Attributes:
        shard: its id.
        behind: every record that arrived so many seconds before the summary is in the log; None: nobody tells.
    """

    shard: str
    behind: float | None = None


class DurableMark(msgspec.Struct, frozen=True, array_like=True):
    """What the log's durable entries were seen to add up to, a heartbeat or two ago: where a reader of its end begins.

    Attributes:
        next_id: the id of the next entry then; all entries below it are durable.
        collecting_from: every entry of the units that still collected then has this id or a higher one.
        through: the owner had copied the outcomes partition up to this id.
    """

    next_id: int
    collecting_from: int
    through: int


class TargetFigure(msgspec.Struct, frozen=True, array_like=True):
    """One of several targets.

    Attributes:
        name: its name.
        waiting: units that are not resolved there.
        failed: those of them that failed there.
        since_ms: when the source committed the first of them that nothing holds back there, or else when it arrived;
            milliseconds since the epoch. None where there is none, or nothing tells.
    """

    name: str
    waiting: int
    failed: int
    since_ms: int | None = None


class LogSummary(msgspec.Struct, frozen=True, array_like=True):
    """The figures of a log. A later release may append fields.

    Attributes:
        at_ms: when it was made, by the owner's clock, milliseconds since the epoch.
        next_id: the id of the next entry.
        mark: where a reader of the log's end begins.
        in_progress: units that wait to be applied or are being applied, without the delayed ones.
        delayed: units in progress that were tried and wait for something of the target: a locked row.
        failed, blocked, discarding: units of these statuses.
        collecting: units whose parts are still to come.
        queued: appends that are not durable yet.
        oldest: the first dispatched unit that is not resolved.
        oldest_open: the unit that is collected for the longest time.
        first_failed, first_delayed: the first ones of these kinds.
        backlog: why the log takes no more from the shards; empty while it does.
        held: what complete units wait for, if for long; empty otherwise.
        shards: how many shards are to be read.
        unread: of these, the ones that are read least far.
        paused: who has paused applying, since when and why, shortened; empty while units are applied.
        targets: several targets; none where there is one.
        assigned: the digest of which target each table belongs to; empty where there is one target.
    """

    at_ms: int
    next_id: int
    mark: DurableMark
    in_progress: int = 0
    delayed: int = 0
    failed: int = 0
    blocked: int = 0
    discarding: int = 0
    collecting: int = 0
    queued: int = 0
    oldest: UnitFigure | None = None
    oldest_open: UnitFigure | None = None
    first_failed: UnitFigure | None = None
    first_delayed: UnitFigure | None = None
    backlog: str = ""
    held: str = ""
    shards: int = 0
    unread: tuple[ShardFigure, ...] = ()
    paused: str = ""
    targets: tuple[TargetFigure, ...] = ()
    assigned: str = ""

    @property
    def dispatched(self) -> int:
        """Returns how many dispatched units are not resolved."""
        return self.in_progress + self.delayed + self.failed + self.blocked + self.discarding


@dataclass(frozen=True, slots=True)
class OwnersFigures:
    """The figures that the owner has beside the folded log; as in :class:`LogSummary`."""

    at_ms: int
    mark: DurableMark
    queued: int = 0
    backlog: str = ""
    held: str = ""
    shards: tuple[ShardFigure, ...] = ()


def as_text(summary: LogSummary) -> str:
    """Returns a summary as it stands in HEAD."""
    return msgspec.json.encode(summary).decode()


def from_text(text: str) -> LogSummary | None:
    """Returns the summary in HEAD; None where there is none, or one of another form."""
    try:
        return msgspec.json.decode(text, type=LogSummary) if text else None
    except (msgspec.MsgspecError, ValueError):
        return None


def summary_of(state: FoldedLog, figures: OwnersFigures) -> LogSummary:
    """Returns the summary of a folded log; looks at each unit in progress once."""
    statuses = state.statuses
    delayed, first_delayed = _delayed(state.units.values()) if statuses.get(UnitStatus.IN_PROGRESS) else (0, None)
    failed = statuses.get(UnitStatus.FAILED, 0)
    unread = sorted(figures.shards, key=lambda shard: -(shard.behind if shard.behind is not None else float("inf")))
    return LogSummary(
        figures.at_ms,
        state.next_id,
        figures.mark,
        in_progress=statuses.get(UnitStatus.IN_PROGRESS, 0) - delayed,
        delayed=delayed,
        failed=failed,
        blocked=statuses.get(UnitStatus.BLOCKED, 0),
        discarding=statuses.get(UnitStatus.DISCARDING, 0),
        collecting=len(state.open),
        queued=figures.queued,
        oldest=_figure(next(iter(state.units.values()), None)),
        oldest_open=_open_figure(next(iter(state.open.values()), None)),
        first_failed=_figure(_first_failed(state.units.values())) if failed else None,
        first_delayed=_figure(first_delayed),
        backlog=figures.backlog,
        held=figures.held,
        shards=len(unread),
        unread=tuple(unread[:MOST_SHARDS]),
        paused=_short(paused_in_words(pause)) if (pause := state.operations.pause) is not None else "",
        targets=tuple(
            TargetFigure(name, *figures, _since_ms(state, name)) for name, figures in state.targets.counts().items()
        ),
        assigned=state.targets.assignment.digest,
    )


def _since_ms(state: FoldedLog, target: str) -> int | None:
    """Returns since when the first unit waits that a target's apply job could apply."""
    for tid, parts in state.targets.units.items():
        part, unit = parts.get(target), state.units.get(tid)
        if unit is not None and part is not None and part.status is UnitStatus.IN_PROGRESS and part.cause is None:
            return unit.meta.arrived_ms if unit.meta.time is None else _millis(unit.meta.time)
    return None


def _delayed(units: Iterable[UnitState]) -> tuple[int, UnitState | None]:
    """Returns how many units in progress an apply job has tried in vain, and the first of them."""
    found = [unit for unit in units if unit.cause is not None and unit.status is UnitStatus.IN_PROGRESS]
    return len(found), found[0] if found else None


def _first_failed(units: Iterable[UnitState]) -> UnitState | None:
    return next((unit for unit in units if unit.status is UnitStatus.FAILED), None)


class DurableMarks:
    """Finds the mark of the present: the state is ahead of the store, and a reader sees only what is durable.

    Args:
        state: the state at the mount, whose entries are all durable.
    """

    def __init__(self, state: FoldedLog) -> None:
        self._marks = [_mark(state)]

    def now(self, state: FoldedLog, durable_id: int) -> DurableMark:
        """Notes the state as a mark, and returns the latest mark whose entries are all below ``durable_id``."""
        if state.next_id > self._marks[-1].next_id:
            self._marks.append(_mark(state))
        while len(self._marks) > 1 and self._marks[1].next_id <= durable_id:
            del self._marks[0]
        return self._marks[0]


def _mark(state: FoldedLog) -> DurableMark:
    return DurableMark(state.next_id, _collecting_from(state), state.through)


def _collecting_from(state: FoldedLog) -> int:
    opened = (unit.fragments[0] for unit in state.open.values() if unit.fragments)  # oldest first
    late = (unit.first_tid for unit in state.late_units())
    return min(next(opened, state.next_id), min(late, default=state.next_id))


def _figure(unit: UnitState | None) -> UnitFigure | None:
    if unit is None:
        return None
    meta = unit.meta
    holder = f"job instance {unit.instance}" if unit.instance is not None else ""
    return UnitFigure(
        _short(unit.uow), unit.tid, unit.status.value, _millis(meta.time), meta.arrived_ms, holder,
        _short(unit.cause or ""),
    )  # fmt: skip


def _open_figure(unit: OpenUnit | None) -> UnitFigure | None:
    if unit is None:
        return None
    arrived = unit.opened_ms if unit.arrived_ms is None else unit.arrived_ms
    holder = _short(" ".join(unit.shards))
    return UnitFigure(
        _short(unit.uow), None, "collecting", _millis(unit.time), arrived, holder, _short(unit.lacks or "")
    )


def _millis(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1_000_000


def _short(text: str) -> str:
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
