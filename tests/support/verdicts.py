"""Facts for tests of the verdict: an application in which all is well, to be spoilt one part at a time."""

from __future__ import annotations

from typing import Any

from kainite.leases.administration.report import LeaseRow, Pulse, ShardState
from kainite.log.state.summary import DurableMark, LogSummary, ShardFigure, UnitFigure
from kainite.verdict.facts import DaemonFacts, Facts, LeaseFacts, LogFacts, SourceFacts

NOW_MS = 1_000_000_000
SHARD = "shardId-000000000000"


def summary(**fields: Any) -> LogSummary:
    """Returns the figures of a log in which nothing waits."""
    known: dict[str, Any] = {"shards": 1, "unread": (ShardFigure(SHARD, 1.0),), **fields}
    return LogSummary(NOW_MS - 1_000, 100, DurableMark(100, 100, -1), **known)


def figure(uow: str = "T-1", tid: int | None = 7, status: str = "in progress", **fields: Any) -> UnitFigure:
    """Returns a unit that the source committed 12 s ago."""
    return UnitFigure(uow, tid, status, **{"source_ms": NOW_MS - 12_000, "arrived_ms": NOW_MS - 11_000, **fields})


def row(shard: str = SHARD, state: ShardState = ShardState.READING, **fields: Any) -> LeaseRow:
    known: dict[str, Any] = {
        "owner": "w", "checkpoint_owner": None, "pulse": Pulse.UNKNOWN, "silent_for": 0.0, "checkpoint": "1", "sub": 0,
        "switches": 0, "parents": (), "children": (), "share": 1.0, **fields,
    }  # fmt: skip
    return LeaseRow(shard, state, **known)


def told(health: str = "ok", **fields: Any) -> dict[str, Any]:
    """Returns a shard as ``/health`` tells it."""
    return {"shard": SHARD, "health": health, "why": "", "failures": 0, "stderr": "", "behind_millis": 0, **fields}


def daemon(*shards: dict[str, Any], **answer: Any) -> DaemonFacts:
    return DaemonFacts("h:1", {"problems": [], "not_ready": [], "checks": [], "shards": list(shards), **answer})


def log(**fields: Any) -> LogFacts:
    return LogFacts("0", **{"owner": "w", "alive": True, "summary": summary(), **fields})


def well(**fields: Any) -> Facts:
    """Returns the facts of an application in which all is well, with ``fields`` in the place of its own."""
    known: dict[str, Any] = {
        "log": log(), "leases": LeaseFacts((row(),)), "source": SourceFacts(seconds=0.5, units=1, heard=1.0), **fields,
    }  # fmt: skip
    return Facts("app", "app.properties", NOW_MS, **known)
