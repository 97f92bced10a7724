"""The rows of the page of shards, daemons and duties, from the facts of the verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kainite.base.checkpoint import Checkpoint
from kainite.fleet.store.items import later_word
from kainite.leases.administration.report import LeaseRow, short
from kainite.observe.check import Level
from kainite.verdict.judging import ApplicationVerdict


@dataclass(frozen=True, slots=True)
class ShardRow:
    """A shard, also one that is finished.

    Attributes:
        shard, holder, state, level, why, stderr: as in the verdict.
        checkpoint: the end of its checkpoint.
        share: its share of the stream's hash keys, 0 to 1; None where that is not known.
        parents, children: the shards that it came from, and those that it was split or merged into.
        pid: the child's process; None where its daemon was not asked.
        behind_ms: how far it is behind, as its daemon says.
        failures: children that failed in a row.
        asked: what a person asks of the holder at the moment, and how far it is; empty for nothing.
        moved_to: the worker that a person has moved the lease to; empty for none.
    """

    shard: str
    holder: str
    state: str
    level: Level
    why: str
    stderr: str
    checkpoint: str
    share: float | None
    parents: tuple[str, ...]
    children: tuple[str, ...]
    pid: int | None
    behind_ms: int | None
    failures: int
    asked: str = ""
    moved_to: str = ""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A daemon: how many leases it holds, and what the fleet knows of it."""

    worker: str
    leases: int
    status: str
    leads: bool
    duties: tuple[str, ...]
    load: float | None
    capacity: float | None


def shard_rows(verdict: ApplicationVerdict) -> list[ShardRow]:
    """Returns the rows of all shards, the worst first, finished ones last."""
    views = {view.shard: view for view in verdict.shards}
    told = _told(verdict)
    leases = {row.shard: row for row in (verdict.facts.leases.rows if verdict.facts.leases is not None else ())}
    rows = []
    for shard in {**views, **leases}:
        view, lease, said = views.get(shard), leases.get(shard), told.get(shard, {})
        rows.append(
            ShardRow(
                shard,
                (view.holder if view is not None else lease.owner if lease is not None else None) or "",
                view.state if view is not None else str(lease.state) if lease is not None else "",
                view.level if view is not None else Level.NOTE,
                view.why if view is not None else "",
                str(said.get("stderr") or (view.stderr if view is not None else "")),
                short(Checkpoint(lease.checkpoint, lease.sub)) if lease is not None else "",
                lease.share if lease is not None else None,
                lease.parents if lease is not None else (),
                _children(shard, leases),
                said.get("pid"),
                said.get("behind_millis"),
                int(said.get("failures") or 0),
                (lease.asked or "") if lease is not None else "",
                (lease.moved_to or "") if lease is not None else "",
            )
        )
    return sorted(rows, key=lambda row: (row.state == "finished", -row.level, row.shard))


def worker_rows(verdict: ApplicationVerdict) -> list[WorkerRow]:
    """Returns the rows of all daemons that hold leases or that the fleet knows, by name."""
    held: dict[str, int] = {}
    for row in verdict.facts.leases.rows if verdict.facts.leases is not None else ():
        if row.owner and row.state != "finished":
            held[row.owner] = held.get(row.owner, 0) + 1
    fleet = verdict.facts.fleet
    picture = fleet.picture if fleet is not None else None
    known = picture.workers if picture is not None else {}
    rows = []
    for name in sorted({*held, *known}):
        worker = known.get(name)
        if worker is None or picture is None:
            rows.append(WorkerRow(name, held.get(name, 0), "", False, (), None, None))
            continue
        duties = tuple(duty.name for duty in picture.duties_of(worker))
        leads = picture.lead is not None and picture.lead.is_of(worker)
        load = picture.load_of(worker)
        rows.append(WorkerRow(name, held.get(name, 0), later_word(worker), leads, duties, load, worker.capacity))
    return rows


def _told(verdict: ApplicationVerdict) -> dict[str, Mapping[str, Any]]:
    """Returns what the daemons that were asked say of each shard."""
    answers = (daemon.answer for daemon in verdict.facts.daemons if daemon.answer is not None)
    return {str(shard.get("shard")): shard for answer in answers for shard in answer.get("shards", ())}


def _children(shard: str, leases: Mapping[str, LeaseRow]) -> tuple[str, ...]:
    own = leases[shard].children if shard in leases else ()
    return own or tuple(name for name, lease in leases.items() if shard in lease.parents)
