"""Checks on the units of work, from the log's summary. Pure.

The file that remedies name is ``FILE`` in ``/health``, which does not tell paths.
"""

from __future__ import annotations

from typing import Final

from kainite.base.words import counted
from kainite.log.state.summary import LogSummary, TargetFigure, UnitFigure
from kainite.observe.check import Check, Level, spoken

LATE_S: Final = 60.0
"""Seconds from which a unit that nothing holds back waits too long to be applied; it usually takes a second or two."""


def unit_checks(summary: LogSummary, now_ms: int, unit_timeout: float, file: str = "FILE") -> tuple[Check, ...]:
    """Returns the checks on failed, blocked, delayed, waiting and collecting units, on room for more, and on targets.

    Args:
        summary: the log's figures.
        now_ms: milliseconds since the epoch.
        unit_timeout: seconds after which a unit that is not complete has waited long.
        file: the settings file, for the remedies.
    """
    return (
        _failed(summary, file),
        _blocked(summary, file),
        _delayed(summary, file),
        _applying(summary, now_ms, file),
        _collecting(summary, now_ms, unit_timeout, file),
        _room(summary, file),
        *(_of_target(target, summary, now_ms, file) for target in summary.targets),
    )


def age_s(unit: UnitFigure, now_ms: int) -> float | None:
    """Returns the seconds since the source committed a unit, or since it arrived where that is not known."""
    since = unit.arrived_ms if unit.source_ms is None else unit.source_ms
    return None if since is None else max(0.0, (now_ms - since) / 1000)


def named(unit: UnitFigure | None) -> str:
    """Returns a unit for people: its name, its id, and why it stands."""
    if unit is None:
        return "none is named"
    at = "" if unit.id is None else f" (id {unit.id})"
    return f"{unit.uow}{at}{': ' if unit.cause else ''}{unit.cause}"


def _failed(summary: LogSummary, file: str) -> Check:
    if not summary.failed:
        return Check("failed units", Level.OK, "none")
    first = summary.first_failed
    name = first.uow if first is not None else "NAME"
    return Check(
        "failed units",
        Level.DEGRADED,
        f"{counted(summary.failed)} failed; the first is {named(first)}",
        f"mend the cause, then kainite uow retry -p {file} {name}; or kainite uow discard -p {file} {name}",
    )


def _blocked(summary: LogSummary, file: str) -> Check:
    if not summary.blocked:
        return Check("blocked units", Level.OK, "none")
    by = f"{summary.first_failed.uow}, which failed" if summary.first_failed is not None else "another unit"
    return Check(
        "blocked units",
        Level.DEGRADED,
        f"{counted(summary.blocked)} blocked: the first waits for {by}",
        f"decide on the failed units; kainite log show -p {file} --status blocked says what each waits for",
    )


def _delayed(summary: LogSummary, file: str) -> Check:
    if not summary.delayed:
        return Check("delayed units", Level.OK, "none")
    return Check(
        "delayed units",
        Level.DEGRADED,
        f"{counted(summary.delayed)} tried in vain and tried again; the first is {named(summary.first_delayed)}",
        "find out in the target who holds the row (PostgreSQL: pg_stat_activity, pg_locks), and end that session; "
        f"kainite uow show -p {file} tells the unit's rows",
    )


def _applying(summary: LogSummary, now_ms: int, file: str) -> Check:
    oldest = summary.oldest
    if summary.paused:
        waits = f"applying is {summary.paused}; {counted(summary.dispatched)} not applied"
        return Check("applying", Level.DEGRADED, waits, f"when its reason is gone: kainite log resume -p {file}")
    if not summary.dispatched or oldest is None:
        return Check("applying", Level.OK, "every unit in the log is applied")
    age = age_s(oldest, now_ms)
    waits = f"{counted(summary.dispatched)} not applied; the oldest is {named(oldest)}"
    if age is not None:
        waits = f"{waits}, {spoken(age)} old"
    late = age is not None and age >= LATE_S and oldest.status == "in progress" and not oldest.cause
    if not late:
        return Check("applying", Level.OK, waits)
    remedy = f"is the apply job running, and does it reach the target? kainite apply -p {file}"
    return Check("applying", Level.BROKEN, waits, remedy)


def _of_target(target: TargetFigure, summary: LogSummary, now_ms: int, file: str) -> Check:
    name, waits = f"target.{target.name}", f"{counted(target.waiting)} not applied there"
    age = None if target.since_ms is None else max(0.0, (now_ms - target.since_ms) / 1000)
    if age is not None and age >= LATE_S and not summary.paused:
        return Check(
            name, Level.BROKEN, f"{waits}; the first that nothing holds back is {spoken(age)} old",
            f"is its apply job running, and does it reach the target? kainite apply -p {file} --target {target.name}",
        )  # fmt: skip
    if not target.failed:
        return Check(name, Level.OK, waits if target.waiting else "every unit is applied there")
    remedy = f"kainite log show -p {file} --target {target.name} --status failed"
    return Check(name, Level.DEGRADED, f"{waits}, {target.failed:,} of them failed", remedy)


def _collecting(summary: LogSummary, now_ms: int, unit_timeout: float, file: str) -> Check:
    oldest = summary.oldest_open
    if summary.held:
        return Check("collecting", Level.DEGRADED, summary.held, "see why that shard or number does not come")
    if oldest is None:
        return Check("collecting", Level.OK, "no unit waits for a part")
    age = age_s(oldest, now_ms)
    waits = f"{counted(summary.collecting)} not complete; the oldest is {named(oldest)}"
    if age is None or age < unit_timeout:
        return Check("collecting", Level.OK, waits)
    return Check(
        "collecting",
        Level.DEGRADED,
        f"{waits}, {spoken(age)} old",
        f"see whether its source sent all parts, and whether every shard is read: kainite leases -p {file}",
    )


def _room(summary: LogSummary, file: str) -> Check:
    if not summary.backlog:
        return Check("room in the log", Level.OK, "the log takes what the shards bring")
    return Check(
        "room in the log", Level.BROKEN, summary.backlog, f"decide on failed units, and look at kainite apply -p {file}"
    )
