"""The true state of each shard: what its lease says, what the log's owner hears of it, and what its daemon says.

A lease alone says only who may read. So a shard counts as read where its daemon's ``/health`` says so, or where the log
has its records; a child that hangs or fails each time shows in both. Where only the lease's counter was seen to move,
the shard is held. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.words import are, counted
from kainite.leases.administration.report import LeaseRow, Pulse, ShardState
from kainite.log.state.summary import LogSummary
from kainite.observe.check import Check, Level, spoken
from kainite.settings.several import is_shard_of
from kainite.verdict.facts import Facts

UNREAD_S: Final = 60.0
"""Seconds by which a shard must be behind to count as not read: a healthy reader is a few seconds behind."""

_TROUBLE: Final = {
    "hung": Level.BROKEN, "failing": Level.BROKEN, "stalled": Level.BROKEN, "throttled": Level.DEGRADED,
}  # fmt: skip
_NOBODY: Final = (ShardState.UNOWNED, ShardState.EXPIRED)


@dataclass(frozen=True, slots=True)
class ShardView:
    """A shard as a person should see it.

    Attributes:
        shard, holder: the shard, and the worker that holds its lease.
        state: what truly happens.
        level: how bad that is.
        why: the reason, where there is one.
        stderr: the last line of the child's standard error, where its daemon told it.
    """

    shard: str
    holder: str | None
    state: str
    level: Level = Level.OK
    why: str = ""
    stderr: str = ""


def shard_views(facts: Facts) -> tuple[ShardView, ...]:
    """Returns the shards that are not finished, by name."""
    told = dict(_told(facts))
    summary = facts.log.summary if facts.log is not None and facts.log.alive else None
    rows = facts.leases.rows if facts.leases is not None else ()
    views = [
        _view(row, told.get(row.shard), None if _is_plain(row.shard, facts) else summary)
        for row in rows if row.state is not ShardState.FINISHED
    ]  # fmt: skip
    known = {row.shard for row in rows}
    views += [_of_daemon(shard, None, answer) for shard, answer in told.items() if shard not in known]
    return tuple(sorted(views, key=lambda view: view.shard))


def _is_plain(shard: str, facts: Facts) -> bool:
    """Tells whether a shard carries no units of work, so that the log knows nothing of it."""
    return any(is_shard_of(shard, stream) for stream in facts.plain)


def shard_check(views: tuple[ShardView, ...], file: str) -> Check:
    """Returns the check on all shards; the worst of them is its cause."""
    bad = sorted((view for view in views if view.level.is_trouble), key=lambda view: -view.level)
    if not bad:
        unsure = sum(view.level is Level.UNKNOWN for view in views)
        if unsure:
            they = f"{'it' if unsure == 1 else 'they'} {are(unsure)}"
            cause = f"{unsure} of {counted(len(views), 'shard')}: not observed whether {they} read"
            return Check("shards", Level.NOTE, cause, f"kainite status -p {file} --wait 10 observes them")
        return Check("shards", Level.OK, f"{counted(len(views), 'shard')} {are(len(views))} read")
    first, more = bad[0], f", and {counted(len(bad) - 1, 'more shard')}" if len(bad) > 1 else ""
    held = f" (held by {first.holder})" if first.holder else ""
    said = f"; its child's last words: {first.stderr}" if first.stderr else ""
    return Check(
        "shards", first.level, f"{first.shard}{held}: {first.why or first.state}{said}{more}", _remedy(first, file)
    )


def _told(facts: Facts) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for daemon in facts.daemons:
        if daemon.answer is not None:
            yield from ((str(shard.get("shard")), shard) for shard in daemon.answer.get("shards", ()))


def _view(row: LeaseRow, told: Mapping[str, Any] | None, summary: LogSummary | None) -> ShardView:
    if row.state in _NOBODY:
        why = "nobody holds it" if row.state is ShardState.UNOWNED else f"{row.owner} has stopped renewing its lease"
        return ShardView(row.shard, row.owner, str(row.state), Level.BROKEN, why)
    if told is not None:
        return _of_daemon(row.shard, row.owner, told)
    if row.state is not ShardState.READING:
        return ShardView(row.shard, row.owner, str(row.state))
    if summary is not None and (view := _of_log(row, summary)) is not None:
        return view
    if row.pulse is Pulse.FRESH:
        return ShardView(row.shard, row.owner, "held", Level.OK, "its lease is renewed; its child was not asked")
    return ShardView(row.shard, row.owner, "held", Level.UNKNOWN, "not observed whether it is read")


def _of_daemon(shard: str, holder: str | None, told: Mapping[str, Any]) -> ShardView:
    health, why, stderr = str(told.get("health", "")), str(told.get("why", "")), str(told.get("stderr") or "")
    level = _TROUBLE.get(health, Level.OK)
    if level is Level.OK and (failures := told.get("failures") or 0):
        health, level, why = "failing", Level.DEGRADED, f"{failures} children failed in a row"
    state = "being read" if health in ("ok", "quiet") else health
    return ShardView(shard, holder, state, level, why, stderr if level.is_trouble else "")


def _of_log(row: LeaseRow, summary: LogSummary) -> ShardView | None:
    """Returns what the log's owner knows of a shard; None where it knows nothing."""
    if not summary.shards:
        return None
    worst = {figure.shard: figure.behind for figure in summary.unread}
    if row.shard in worst:
        behind = worst[row.shard]
        if behind is None:
            return ShardView(row.shard, row.owner, "not read", Level.BROKEN, "no daemon tells that it reads it")
        if behind >= UNREAD_S:
            return ShardView(
                row.shard, row.owner, "not read", Level.BROKEN, f"the log has nothing newer than {spoken(behind)} ago"
            )
        return ShardView(row.shard, row.owner, "being read")
    last = summary.unread[-1].behind if summary.unread else None
    # The summary names the worst shards alone; where the last of these is read, all others are.
    return ShardView(row.shard, row.owner, "being read") if last is not None and last < UNREAD_S else None


def _remedy(view: ShardView, file: str) -> str:
    if view.state in ("hung", "failing"):
        return "see the child's standard error in the daemon's log; mend the record processor, or end the hung child"
    if view.state == "throttled":
        return "stop what else reads the stream, raise idleTimeBetweenReadsInMillis, or add shards"
    if view.state == "stalled":
        return f"see the log and /health of {view.holder}; kainite doctor -p {file} asks what the daemon needs"
    if view.state == "not read":
        return f"see the log and /health of {view.holder}: its child hangs or fails, or the daemon is gone"
    return f"start a daemon: kainite run -p {file}; kainite leases -p {file} --watch shows who takes the shard"
