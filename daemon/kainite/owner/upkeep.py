"""The upkeep of the log by its owner, on a timer; each step can be repeated after a crash.

1. *outcomes*: the outcomes that the apply job wrote into its own log partition (``<partition>:outcomes``) are
   copied into the log, with the id up to which they were copied; the apply job truncates up to this id.
   :mod:`kainite.owner.looking` decides when the owner looks for outcomes and requests.
2. *requests* of people are decided, appended with their record, and then answered (:mod:`kainite.owner.answering`).
3. *awaited streams* whose leases all daemons see are awaited no more (:mod:`kainite.log.collecting.reported_shards`).
4. *expiry*: units that wait too long for their parts fail (:mod:`kainite.log.collecting.waiting`).
5. *names* of dispatched units move on (:mod:`kainite.owner.names`), before each snapshot.
6. *snapshot*: after ``snapshot_entries`` entries the folded state is appended, in parts
   (:mod:`kainite.log.state.snapshot`). Once all are durable, the head names it. Entries before the state of the
   *previous* snapshot, and before every entry that is still needed, are written to the audit trail and truncated.
   The previous snapshot stays, with all entries since its state, so that a reader that has just read the head still
   finds the snapshot that the head named. A crash among the parts leaves parts that nothing names.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from kainite.base.clock import epoch_ms
from kainite.base.waiting import wait_until_set
from kainite.log.collecting.collect import leased
from kainite.log.collecting.overdue import expire, release_turn
from kainite.log.collecting.reported_shards import ReportedShards
from kainite.log.collecting.unit_entries import RELEASED
from kainite.log.collecting.waiting import Waiting
from kainite.log.contract import LogStore
from kainite.log.format.entry import SNAPSHOT, SNAPSHOT_PART, Batch, ControlMeta, Entry, EntryKind
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.outcomes import outcomes_of, outcomes_partition
from kainite.log.state.snapshot_sections import manifest
from kainite.log.state.target_parts import through_of
from kainite.owner.answering import Answering, AskedOwner
from kainite.owner.audit.trail import AuditTrail, audited
from kainite.owner.entry_writer import EntryWriter
from kainite.owner.looking import Looking
from kainite.owner.mount import Mount
from kainite.owner.names import NamesMove, deletable, next_move
from kainite.owner.target_outcomes import copied
from kainite.settings import LogSettings, UowSettings

_logger = logging.getLogger(__name__)

LOOKS: Final = 5
"""The most runs of the upkeep in the time of one poll, however often outcomes are announced."""


REST: Final = 20.0
"""The least time between two looks for overdue units, in multiples of the time that a look takes."""


class LogUpkeep:
    """Does the upkeep of one log.

    Args:
        store, settings, uow: the log's store, and the settings of the log and of its units.
        mounted: the owner's hold on the partition.
        audit: gets the units before they are truncated; None means that nothing keeps them.
        waiting: tells how long open units have waited for their parts.
        reported: tells which streams need not be awaited any more.
        looking: decides when the owner looks for outcomes and requests.
    """

    def __init__(
        self,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        mounted: Mount,
        audit: AuditTrail | None,
        waiting: Waiting,
        reported: ReportedShards,
        looking: Looking,
    ) -> None:
        self._store = store
        self._settings = settings
        self._uow = uow
        self._mount = mounted
        self._audit = audit
        self._waiting = waiting
        self._reported = reported
        self._looking = looking
        self._answering = Answering(store, settings.partition, uow, mounted)
        self._rested_at = 0.0

    async def run(self, owner: AskedOwner) -> None:
        """Takes the steps now and then, until cancelled; raises as :meth:`run_once`."""
        poll, wake = self._settings.poll, self._looking.wake
        while True:
            await asyncio.sleep(poll / LOOKS)
            await wait_until_set(wake, poll * (1 - 1 / LOOKS))
            wake.clear()
            await self.run_once(owner)

    async def run_once(self, owner: AskedOwner) -> None:
        """Takes the steps, the last two only when a snapshot is due.

        Raises:
            LogUnavailableError: the store did not answer; the next run takes the remaining steps.
            LogFencedError: another owner has the partition.
        """
        if self._looking.outcomes_due(owner.state.through, unresolved=bool(owner.state.units)):
            await self._take_outcomes(owner)
        if self._looking.requests_due():
            await self._answering.answer_all(owner)
        if streams := self._reported.leased():
            await owner.write(lambda state: leased(state, streams, epoch_ms()))
        await self._expire(owner)
        if self._is_due(owner.state):
            await self._move_names(owner)
            await self._snapshot(owner)

    async def _expire(self, owner: AskedOwner) -> None:
        """Fails what is overdue and releases what may go, some at a time; rests where a look takes long."""
        clock = time.perf_counter
        more, rested = True, clock() >= self._rested_at

        def decided(state: FoldedLog) -> Sequence[Entry]:
            nonlocal more
            if entries := release_turn(state, self._uow, epoch_ms()):
                return entries
            if not rested:
                more = False
                return ()
            began = clock()
            entries = expire(state, self._uow, epoch_ms(), self._waiting.overdue(state.open, state.next_id))
            more = len(entries) >= RELEASED
            self._rested_at = clock() + REST * (clock() - began)
            return entries

        while more:
            await owner.write(decided)

    def _is_due(self, state: FoldedLog) -> bool:
        """Returns whether to write a snapshot: its cost grows with the units in it, so as many entries come first."""
        units = len(state.units) + len(state.open)
        return state.next_id - state.snapshot_since > max(self._settings.snapshot_entries, units)

    async def _take_outcomes(self, owner: AskedOwner) -> None:
        for target in owner.state.targets.assignment.names or ("",):
            partition = outcomes_partition(self._settings.partition, target)
            first_id = through_of(target, owner.state.through, owner.state.targets) + 1
            batches = await asyncio.to_thread(_read_all, self._store, partition, first_id)
            if batches:
                outcomes, through = outcomes_of(batches, first_id), batches[-1].last_id
                await owner.write(partial(copied, target=target, outcomes=outcomes, through=through))

    async def _move_names(self, owner: AskedOwner) -> None:
        recent = owner.state.recent
        while (move := next_move(recent, self._uow.dedup_window, self._mount.generation)) is not None:
            await self._move(owner, move)
        if gone := deletable(recent.stale, self._mount.generation):
            await asyncio.to_thread(self._store.delete_names, self._settings.partition, gone)
            recent.stale.difference_update(gone)

    async def _move(self, owner: AskedOwner, move: NamesMove) -> None:
        """Writes the segment's item, then the entry; nothing else moves names, so both are about the same names."""
        if move.item is not None:
            await asyncio.to_thread(self._store.put_names, self._settings.partition, *move.item)
        await _control(owner, move.meta, b"")

    async def _snapshot(self, owner: AskedOwner) -> None:
        """Appends a snapshot in parts, names it in HEAD, and truncates the entries that no reader needs then."""
        head, state = self._mount.head, owner.state
        # Readers that have just read HEAD fold from this id; if it is not known, nothing is truncated this time.
        begun = state.snapshot_since if state.snapshot_id == head.snapshot else head.low_water_mark
        document = snapshot.capture(state)
        since, parts = state.next_id, snapshot.parts(document)
        written: list[int] = []
        try:
            while (part := await asyncio.to_thread(next, parts, None)) is not None:
                written.append(await _control(owner, ControlMeta(SNAPSHOT_PART), part))
        finally:
            state.take_units_back()
        latest = await _control(owner, ControlMeta(SNAPSHOT, since), manifest(written))
        # Computed for the snapshot, which is durable by now; the folded state may be ahead of the durable entries.
        needed = await asyncio.to_thread(snapshot.needed_by, document)
        await asyncio.to_thread(self._truncate, latest, min(begun, needed) if head.snapshot >= 0 else 0)

    def _truncate(self, latest: int, low: int) -> None:
        """Writes rows to the audit trail, names the snapshot in the head, and truncates below ``low``.

        The next truncation makes up for one that a crash prevented.
        """
        old_low = self._mount.head.low_water_mark
        if self._audit is not None and low > old_low:
            rows = audited(self._store, self._settings.partition, old_low, low)
            self._audit.write(rows, old_low, low)
        self._mount.renew(latest, low, latest)
        self._store.truncate(self._settings.partition, low)


def _read_all(store: LogStore, partition: str, first_id: int) -> list[Batch]:
    return list(store.read_batches(partition, first_id, data=False, strong=True))


async def _control(owner: EntryWriter, meta: ControlMeta, data: bytes) -> int:
    """Appends a CONTROL entry; returns its transaction id once it is durable."""
    tid = -1

    def decided(state: FoldedLog) -> Sequence[Entry]:
        nonlocal tid
        tid = state.next_id
        journal = Journal(state, epoch_ms())
        journal.write(EntryKind.CONTROL, meta, data=data)
        return journal.entries

    await owner.write(decided)
    return tid
