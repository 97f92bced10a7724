"""A verdict as text and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from kainite.base.words import counted
from kainite.log.state.summary import LogSummary
from kainite.observe.check import Check, Level, spoken
from kainite.verdict.judging import ApplicationVerdict
from kainite.verdict.lag import LagPart
from kainite.verdict.shards import ShardView
from kainite.verdict.units import age_s, named

_SIGN: Final = {Level.OK: "✓", Level.NOTE: "·", Level.UNKNOWN: "?", Level.DEGRADED: "!", Level.BROKEN: "✗"}
MOST_SHARDS: Final = 20
"""How many shards the text shows; the worst ones first. JSON has all."""


def lines(verdict: ApplicationVerdict) -> list[str]:
    """Returns a verdict as lines of text: the worst first, then the next step, then everything else."""
    return [
        *_headline(verdict),
        "",
        *(_check(check) for check in verdict.checks),
        "",
        *_lag(verdict),
        *_units(verdict),
        *_shards(verdict.shards),
    ]


def as_json(verdict: ApplicationVerdict) -> dict[str, Any]:
    """Returns a verdict as JSON: the keys are stable, and later releases may add some."""
    facts, summary = verdict.facts, _summary(verdict)
    log = facts.log
    return {
        "application": facts.application,
        "at": datetime.fromtimestamp(facts.now_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "verdict": verdict.status.name.lower(),
        "exit_status": int(verdict.status),
        "next": verdict.next_step,
        "checks": [check.as_json() for check in verdict.checks],
        "lag": {
            "seconds": verdict.lag.seconds,
            "stages": [{**asdict(part), "stage": part.stage.value} for part in verdict.lag.parts],
        },
        "oldest": _oldest(verdict),
        "units": None if summary is None else _counts(summary),
        "figures_at_ms": None if summary is None else summary.at_ms,
        "owner": None
        if log is None
        else {"worker": log.owner, "process": log.process, "alive": log.alive, "released": log.released},
        "shards": [{**asdict(view), "level": view.level.word} for view in verdict.shards],
        "workers": _workers(verdict),
        "duties": _duties(verdict),
    }


def _summary(verdict: ApplicationVerdict) -> LogSummary | None:
    return None if verdict.facts.log is None else verdict.facts.log.summary


def _headline(verdict: ApplicationVerdict) -> list[str]:
    troubles = verdict.troubles
    shown = [f"{verdict.facts.application}: {verdict.status.name.lower()}"]
    if troubles:
        shown[0] += f": {troubles[0].name}: {troubles[0].cause}"
        if len(troubles) > 1:
            shown[0] += f" ({len(troubles) - 1} more below)"
    if verdict.next_step:
        shown.append(f"next: {verdict.next_step}")
    return shown


def _check(check: Check) -> str:
    line = f"{_SIGN[check.level]} {check.name}: {check.cause}"
    return f"{line}\n    → {check.remedy}" if check.remedy and check.level.is_trouble else line


def _lag(verdict: ApplicationVerdict) -> list[str]:
    lag = verdict.lag
    whole = "not known" if lag.seconds is None else spoken(lag.seconds)
    return [f"lag: {whole}, from the source's commit", *(f"  {_part(part)}" for part in lag.parts)]


def _part(part: LagPart) -> str:
    units = "? units" if part.units is None else counted(part.units)
    seconds = "?" if part.seconds is None else spoken(part.seconds)
    return f"{part.stage.value:<8}{seconds:>8}  {units}{'  ' if part.note else ''}{part.note}"


def _units(verdict: ApplicationVerdict) -> list[str]:
    summary, oldest = _summary(verdict), verdict.lag.oldest
    if summary is None:
        return []
    shown = ["units: " + ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in _counts(summary).items())]
    if oldest is not None:
        age = age_s(oldest, verdict.facts.now_ms)
        parts = [named(oldest), oldest.status, "of unknown age" if age is None else f"{spoken(age)} old", oldest.holder]
        shown.append("oldest that is not committed: " + "; ".join(part for part in parts if part))
    return shown


def _counts(summary: LogSummary) -> dict[str, int]:
    names = ("collecting", "in_progress", "delayed", "blocked", "failed", "discarding")
    return {name: getattr(summary, name) for name in names}


def _oldest(verdict: ApplicationVerdict) -> dict[str, Any] | None:
    oldest = verdict.lag.oldest
    if oldest is None:
        return None
    fields = {name: getattr(oldest, name) for name in oldest.__struct_fields__}
    return {**fields, "age_seconds": age_s(oldest, verdict.facts.now_ms)}


def _shards(views: tuple[ShardView, ...]) -> list[str]:
    if not views:
        return []
    worst_first = sorted(views, key=lambda view: (-view.level, view.shard))
    shown = [f"shards: {len(views)}", *(f"  {_shard(view)}" for view in worst_first[:MOST_SHARDS])]
    if len(views) > MOST_SHARDS:
        shown.append(f"  and {len(views) - MOST_SHARDS} more")
    return shown


def _shard(view: ShardView) -> str:
    parts = [f"{_SIGN[view.level]} {view.shard}", view.state, view.holder or "", view.why]
    if view.stderr:
        parts.append(f"standard error: {view.stderr}")
    return "; ".join(part for part in parts if part)


def _workers(verdict: ApplicationVerdict) -> list[dict[str, Any]]:
    fleet = verdict.facts.fleet
    if fleet is None or fleet.picture is None:
        return []
    lead = fleet.picture.lead
    return [
        {"worker": name, "status": worker.status.value, "leads": lead is not None and lead.is_of(worker)}
        for name, worker in sorted(fleet.picture.workers.items())
    ]


def _duties(verdict: ApplicationVerdict) -> list[dict[str, Any]]:
    fleet = verdict.facts.fleet
    if fleet is None or fleet.picture is None:
        return []
    return [
        {"duty": name, "status": duty.status.value, "worker": duty.worker, "wanted": duty.wanted, "error": duty.error}
        for name, duty in sorted(fleet.picture.duties.items())
    ]
