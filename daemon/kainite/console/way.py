"""The way of the data as the overview's picture: a station for each part, with its figures and its level. Pure.

Levels and causes are the verdict's (:mod:`kainite.verdict.judging`); nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kainite.observe.check import Check, Level, spoken, worst
from kainite.verdict.judging import ApplicationVerdict
from kainite.verdict.lag import LagPart, LagStage


@dataclass(frozen=True, slots=True)
class Station:
    """A part of the way.

    Attributes:
        name: the part.
        figure: its main figure; a dash where nothing tells.
        unit: what the figure counts.
        detail: what else is worth knowing, in a few words.
        level: how bad it is.
        page: the page that says more, below the application's.
    """

    name: str
    figure: str
    unit: str
    detail: str
    level: Level
    page: str


def stations(verdict: ApplicationVerdict, rate: float, target: str) -> tuple[Station, ...]:
    """Returns the stations in the order in which data passes them.

    Args:
        verdict: the verdict on the application.
        rate: units that are applied a second.
        target: what the target is, or the targets are, for people.
    """
    parts = {part.stage: part for part in verdict.lag.parts}
    summary = verdict.facts.log.summary if verdict.facts.log is not None else None
    shards = verdict.shards
    read = sum(not view.level.is_trouble for view in shards)
    found = [
        Station("Source", *_behind(parts.get(LagStage.SOURCE)), _level(verdict, "source"), "shards"),
        Station("Stream", *_behind(parts.get(LagStage.STREAM)), Level.OK, "shards"),
        Station("Shards", f"{read} of {len(shards)}" if shards else "–", "read", _workers(verdict),
                _level(verdict, "shards", "lease table"), "shards"),
    ]  # fmt: skip
    if summary is None:
        return tuple(found)
    applying = summary.in_progress + summary.delayed + summary.discarding
    counts = {"failed": summary.failed, "blocked": summary.blocked, "delayed": summary.delayed}
    troubled = [f"{number:,} {word}" for word, number in counts.items() if number] or ["none failed"]
    if summary.paused:
        troubled.insert(0, "paused")
    owner = verdict.facts.log.owner if verdict.facts.log is not None else None
    return (
        *found,
        Station("Collecting", f"{summary.collecting:,}", _units(summary.collecting), "wait for a part or their turn",
                _level(verdict, "collecting"), "units?status=collecting"),
        Station("Log", f"{summary.next_id:,}", "entries", f"owned by {owner}" if owner else "nobody owns it",
                _level(verdict, "owner", "room in the log"), "log"),
        Station("Apply", f"{applying:,}", "to apply", ", ".join(troubled),
                _level(verdict, "applying", "failed units", "blocked units", "delayed units"), "apply"),
        Station("Targets" if summary.targets else "Target", f"{rate:,.1f}", "units/s", target,
                _level(verdict, *(f"target.{each.name}" for each in summary.targets)), "apply"),
    )  # fmt: skip


def _behind(part: LagPart | None) -> tuple[str, str, str]:
    if part is None or (part.seconds is None and part.units is None):
        return "–", "lag not known", "" if part is None else part.note
    if part.seconds is None:
        return f"{part.units:,}", f"{_units(part.units or 0)} behind", part.note
    return spoken(part.seconds), "behind", part.note


def _workers(verdict: ApplicationVerdict) -> str:
    holders = {view.holder for view in verdict.shards if view.holder}
    return f"by {len(holders)} daemon{'' if len(holders) == 1 else 's'}" if holders else "by nobody"


def _level(verdict: ApplicationVerdict, *names: str) -> Level:
    checks: Iterable[Check] = (check for check in verdict.checks if check.name in names)
    return worst(checks)


def _units(number: int) -> str:
    return "unit" if number == 1 else "units"
