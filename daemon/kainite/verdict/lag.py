"""The lag from the source's commit to the target, split into the stages that a unit passes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kainite.log.state.summary import LogSummary, UnitFigure
from kainite.observe.check import spoken
from kainite.verdict.facts import DaemonFacts, Facts, SourceFacts
from kainite.verdict.units import age_s


class LagStage(StrEnum):
    """The stages that a unit passes."""

    SOURCE = "source"  # committed at the source, not on the stream
    STREAM = "stream"  # on the stream, not read into the log
    COLLECT = "collect"  # in the log, a part or the unit's turn is still to come
    LOG = "log"  # handed to the log's owner, not durable
    APPLY = "apply"  # dispatched, not committed at the target


@dataclass(frozen=True, slots=True)
class LagPart:
    """The lag of one stage.

    Attributes:
        stage: the stage.
        units: how many units are in it; None where nothing tells.
        seconds: how far the stage is behind; None where nothing tells.
        note: what the figures are, or why there are none.
    """

    stage: LagStage
    units: int | None
    seconds: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class WholeLag:
    """The whole lag.

    Attributes:
        seconds: the age of the oldest unit that is not committed, from the source's commit where that is known; where
            every unit is committed, how far the stream and the source are behind. None where nothing tells.
        oldest: the oldest unit that is not committed; None where all are.
        parts: the stages, in the order in which a unit passes them.
    """

    seconds: float | None
    oldest: UnitFigure | None
    parts: tuple[LagPart, ...]


def lag_of(facts: Facts) -> WholeLag:
    """Returns the lag that facts show."""
    summary = facts.log.summary if facts.log is not None else None
    stream = _stream(summary, facts.daemons)
    source = _source(facts.source)
    if summary is None:
        return WholeLag(_longest((source.seconds, stream.seconds)), None, (source, stream))
    oldest = _oldest((summary.oldest, summary.oldest_open), facts.now_ms)
    collect = LagPart(LagStage.COLLECT, summary.collecting, _age(summary.oldest_open, facts.now_ms))
    log = LagPart(LagStage.LOG, summary.queued, None if summary.queued else 0.0, "appends that are not durable")
    apply = LagPart(LagStage.APPLY, summary.dispatched, _age(summary.oldest, facts.now_ms))
    ages = (_age(oldest, facts.now_ms) if oldest is not None else None, source.seconds, stream.seconds)
    return WholeLag(_longest(ages), oldest, (source, stream, collect, log, apply))


def _source(source: SourceFacts) -> LagPart:
    """Returns the source's stage; the age of the newest commit is shown, and is no lag while the source may be idle."""
    if source.seconds is None and source.newest is not None:
        return LagPart(
            LagStage.SOURCE, source.units, None, f"the newest commit on the stream is {spoken(source.newest)} old"
        )
    known = source.seconds is not None or source.units is not None
    return LagPart(LagStage.SOURCE, source.units, source.seconds, "" if known else "no extractor tells how far it is")


def _stream(summary: LogSummary | None, daemons: Iterable[DaemonFacts]) -> LagPart:
    if summary is not None and summary.unread:
        worst = summary.unread[0]
        note = f"shard {worst.shard} is read least far" if worst.behind is not None else f"nobody reads {worst.shard}"
        return LagPart(LagStage.STREAM, None, worst.behind, note)
    behind = [
        shard["behind_millis"] / 1000
        for daemon in daemons
        if daemon.answer is not None
        for shard in daemon.answer.get("shards", ())
        if shard.get("behind_millis") is not None
    ]
    note = "of the daemons that were asked" if behind else "nobody tells how far the shards are read"
    return LagPart(LagStage.STREAM, None, max(behind, default=None), note)


def _oldest(units: Iterable[UnitFigure | None], now_ms: int) -> UnitFigure | None:
    found = [unit for unit in units if unit is not None]
    return max(found, key=lambda unit: age_s(unit, now_ms) or 0.0, default=None)


def _age(unit: UnitFigure | None, now_ms: int) -> float | None:
    return 0.0 if unit is None else age_s(unit, now_ms)


def _longest(ages: Iterable[float | None]) -> float | None:
    return max((age for age in ages if age is not None), default=None)
