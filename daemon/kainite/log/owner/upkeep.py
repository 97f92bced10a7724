"""What the log's owner does on a timer, each step on its own and repeatable after a crash.

1. *outcomes*: what the apply job wrote into its own log partition (``<partition>:outcomes``) is
   copied into the log, with how far it was copied; the apply job truncates below that.
2. *requests*: retry and discard are decided, appended, and then answered.
3. *expiry*: units that never complete fail.
4. *snapshot*: after ``snapshot_entries`` entries the folded state is appended; once it is
   durable the head names it, and what lies before the snapshot *before it* and before anything
   that is still needed goes to the audit trail and is truncated. One snapshot is kept in
   reserve so that a reader that just read the head still finds what it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kainite.base.clock import epoch_ms
from kainite.log.audit.trail import AuditTrail, audited
from kainite.log.format.entry import Batch, ControlMeta, Entry, EntryKind, Outcome, StatusMeta
from kainite.log.owner.collect import expire
from kainite.log.owner.mount import Mount
from kainite.log.owner.requests import decide
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.store.contract import LogStore
from kainite.settings import LogSettings, UowSettings


def outcomes_partition(partition: str) -> str:
    """The log partition in which the apply job keeps what became of the units of ``partition``."""
    return f"{partition}:outcomes"


def outcomes_of(batches: Iterable[Batch], first_id: int) -> tuple[Outcome, ...]:
    """All outcomes in the entries of ``batches`` from ``first_id`` on, in order."""
    metas = (entry.meta for batch in batches for _, entry in batch.entries_from(first_id))
    return tuple(outcome for meta in metas if isinstance(meta, StatusMeta) for outcome in meta.outcomes)


class Writer(Protocol):
    """The owner, as far as upkeep needs it."""

    state: FoldedLog

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None: ...


class LogUpkeep:
    def __init__(
        self, store: LogStore, settings: LogSettings, uow: UowSettings, mounted: Mount, audit: AuditTrail | None
    ) -> None:
        self._store = store
        self._settings = settings
        self._uow = uow
        self._mount = mounted
        self._audit = audit

    async def run_once(self, owner: Writer) -> None:
        """Do what is due.

        Raises:
            LogUnavailableError: the store did not answer; the next run does what is left.
            LogFencedError: the partition is another owner's.
        """
        await self._take_outcomes(owner)
        await self._answer_requests(owner)
        await owner.write(lambda state: expire(state, self._uow, epoch_ms()))
        if owner.state.next_id - owner.state.snapshot_id > self._settings.snapshot_entries:
            await self._snapshot(owner)

    async def _take_outcomes(self, owner: Writer) -> None:
        partition = outcomes_partition(self._settings.partition)
        first_id = owner.state.through + 1
        batches = await asyncio.to_thread(_read_all, self._store, partition, first_id)
        if batches:
            outcomes = outcomes_of(batches, first_id)
            through = batches[-1].last_id
            await owner.write(lambda state: _status(state, StatusMeta(outcomes, through)))

    async def _answer_requests(self, owner: Writer) -> None:
        requests = await asyncio.to_thread(self._store.read_requests, self._settings.partition)
        for request_id, request in requests:
            answer = await _carry_out(owner, request_id, request)
            await asyncio.to_thread(self._store.answer_request, self._settings.partition, request_id, answer)

    async def _snapshot(self, owner: Writer) -> None:
        before = self._mount.head.snapshot
        await owner.write(_snapshot_entry)
        latest = owner.state.snapshot_id
        low = min(before, owner.state.oldest_needed()) if before >= 0 else 0
        await asyncio.to_thread(self._truncate, latest, low)

    def _truncate(self, latest: int, low: int) -> None:
        """Name the snapshot, then let go of what lies below ``low``; a crash between is caught up later."""
        old_low = self._mount.head.low_water_mark
        if self._audit is not None and low > old_low:
            rows = audited(self._store, self._settings.partition, old_low, low)
            self._audit.write(rows, old_low, low)
        self._mount.renew(latest, low, latest)
        self._store.truncate(self._settings.partition, low)


async def _carry_out(owner: Writer, request_id: str, request: Mapping[str, str]) -> Mapping[str, str]:
    """Append what the request asks for, if the state allows it; the answer, once that is durable."""
    answer: Mapping[str, str] = {}

    def decided(state: FoldedLog) -> Sequence[Entry]:
        nonlocal answer
        decision = decide(state, request_id, request)
        answer = decision.answer
        outcomes = () if decision.outcome is None else (decision.outcome,)
        return _status(state, StatusMeta(outcomes, requests=(request_id,))) if outcomes else ()

    await owner.write(decided)
    return answer


def _read_all(store: LogStore, partition: str, first_id: int) -> list[Batch]:
    return list(store.read_batches(partition, first_id, data=False, strong=True))


def _status(state: FoldedLog, meta: StatusMeta) -> Sequence[Entry]:
    journal = Journal(state, epoch_ms())
    journal.write(EntryKind.STATUS, meta)
    return journal.entries


def _snapshot_entry(state: FoldedLog) -> Sequence[Entry]:
    journal = Journal(state, epoch_ms())
    journal.write(EntryKind.CONTROL, ControlMeta(), snapshot.dump(state))
    return journal.entries
