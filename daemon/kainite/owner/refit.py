"""Judges failed units again: above all misfits, with deltas that did not fit the target's catalogue when they came.

A unit that failed because parts came late, or because of a late number, is judged again too before a retry applies it:
its deltas may have come under several catalogues, and its UNIT entry does not tell its size. Only a person retries it.

A misfit's deltas are in the log as they were emitted. They are read back, judged and signed under the catalogue as it
is now, and written as a REFIT entry, which replaces the unit's deltas and signatures; a STATUS entry in the same batch
puts the unit in progress again, at its own place in the order. A unit that still does not fit stays as it is.

A retry (``kainite uow retry``) reads the catalogue first. In addition, :class:`Refitting` judges all misfits whenever
the catalogue has changed, and after a mount, unless a correction of the unit is under way
(:mod:`kainite.log.state.corrections`).

=========================================  ==========================================================================
crash                                      leaves
=========================================  ==========================================================================
before the batch is durable                the misfit as it was; a request is decided again, and all misfits are
                                           judged by the next owner
after it                                   a unit in progress; a request that is asked again is recognised by its id
=========================================  ==========================================================================
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogCorruptError
from kainite.base.logs import event
from kainite.base.time_limit import time_limit
from kainite.log.collecting.unit_entries import note_scheme
from kainite.log.contract import LogStore
from kainite.log.format.deltas import deltas_of, dump_deltas
from kainite.log.format.entry import Entry, EntryKind, Fault, Outcome, RefitMeta, StatusMeta, UnitStatus
from kainite.log.state.corrections import correction_of
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.unit_fields import UnitCommand, unit_fields
from kainite.log.state.unit_state import UnitState
from kainite.owner.entry_writer import EntryWriter
from kainite.settings import Isolation, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.delta import Delta
from kainite.uow.signing import SignedDeltas, Signing
from kainite.uow.touches import NOTHING

_logger = logging.getLogger(__name__)

READ_LIMIT_S = 15.0
"""The most seconds that a retry waits for the catalogue; then it is judged by the catalogue that was read before."""

READ_EVERY_S = 5.0
"""Seconds between two reads of the catalogue while there are misfits."""


def is_misfit(unit: UnitState | None) -> bool:
    """Returns whether the unit has failed because it did not fit the catalogue."""
    return unit is not None and unit.fault is Fault.MISFIT and unit.status is UnitStatus.FAILED


def is_kept(unit: UnitState | None) -> bool:
    """Returns whether a retry can apply the failed unit if all its deltas fit the catalogue as it is now."""
    return unit is not None and unit.status is UnitStatus.FAILED and unit.fault is not None and unit.obstacle is None


def refit_entries(
    journal: Journal, rules: UowSettings, unit: UnitState, signing: Signing, judged: SignedDeltas
) -> None:
    """Writes the REFIT entry of a unit that fits."""
    note_scheme(journal, signing.scheme)
    serialize = rules.isolation is Isolation.SERIALIZE
    touched = judged.touched(signing.scheme.id) if serialize else NOTHING
    meta = RefitMeta(unit.tid, unit.uow, unit.count)
    journal.write(EntryKind.REFIT, meta, touched, data=dump_deltas(judged.deltas))


class Refitting:
    """Judges the misfits of one log partition anew.

    Args:
        store, partition: the log's store, and the name of its log partition.
        rules: the settings by which units are ordered.
        catalogue: the target's tables.
        owner: appends the decided entries.
    """

    def __init__(
        self, store: LogStore, partition: str, rules: UowSettings, catalogue: CurrentCatalogue, owner: EntryWriter
    ) -> None:
        self._store = store
        self._partition = partition
        self._rules = rules
        self._catalogue = catalogue
        self._owner = owner
        self._signing: Signing | None = None
        self._judged: set[int] = set()  # misfits that do not fit by _signing

    async def latest(self) -> Signing:
        """Reads the catalogue; returns the rules that follow from it."""
        try:
            async with time_limit(READ_LIMIT_S):
                await self._catalogue.read_again()
        except TimeoutError:
            pass
        return self._catalogue.signing

    async def judged(self, unit: UnitState) -> tuple[Signing, SignedDeltas]:
        """Reads the catalogue, and judges one misfit by it."""
        signing = await self.latest()
        return signing, await self.judge(unit, signing)

    async def watch(self, every: float = READ_EVERY_S) -> None:
        """Reads the catalogue every so many seconds while there are misfits, and judges them when it has changed."""
        while True:
            if self._owner.state.misfits:
                if self._signing is not None:
                    await self._catalogue.read_again()
                await self.run_once()
            await asyncio.sleep(every)

    async def run_once(self) -> None:
        """Judges the misfits that were not judged by the same catalogue before."""
        signing = self._catalogue.signing
        if self._signing is not signing:
            self._signing, self._judged = signing, set()
        for tid in [tid for tid in self._owner.state.misfits if tid not in self._judged]:
            self._judged.add(tid)
            unit = self._owner.state.units.get(tid)
            if unit is not None and is_misfit(unit):
                await self._judge_again(unit, signing)

    async def _judge_again(self, unit: UnitState, signing: Signing) -> None:
        """Judges a misfit; one whose deltas cannot be read stays as it is, and does not stop the log."""
        try:
            judged = await self.judge(unit, signing)
        except LogCorruptError as error:
            about = unit_fields(unit.uow, unit.tid, unit.tables, UnitCommand.DISCARD)
            event(_logger, logging.ERROR, "misfit not judged", **about, cause=error)
            return
        await self._apply(unit, signing, judged)

    async def _apply(self, unit: UnitState, signing: Signing, judged: SignedDeltas) -> None:
        def decided(state: FoldedLog) -> Sequence[Entry]:
            journal = Journal(state, epoch_ms())
            fits = is_misfit(state.units.get(unit.tid)) and not judged.misfits
            if fits and correction_of(state, unit) is None:
                refit_entries(journal, self._rules, unit, signing, judged)
                outcome = Outcome(unit.tid, UnitStatus.IN_PROGRESS, cause="fits the target's catalogue as it is now")
                journal.write(EntryKind.STATUS, StatusMeta((outcome,)))
            return journal.entries

        await self._owner.write(decided)

    async def judge(self, unit: UnitState, signing: Signing) -> SignedDeltas:
        """Judges one misfit.

        Raises:
            LogCorruptError: its deltas cannot be read.
        """
        await self._owner.write(lambda _: ())  # the unit's entries must be durable to be read from the store
        return await asyncio.to_thread(judge_anew, self._store, self._partition, unit.entries, signing)


def judge_anew(store: LogStore, partition: str, entries: Sequence[int], signing: Signing) -> SignedDeltas:
    """Reads the deltas in these entries, and judges them.

    Raises:
        LogCorruptError: an entry is missing, or has no deltas.
    """
    return signing.judge_all(_read(store, partition, entries))


def _read(store: LogStore, partition: str, entries: Sequence[int]) -> list[Delta]:
    """Returns the deltas in these entries, in order."""
    found: list[Delta] = []
    for tid in entries:
        for batch in store.read_batches(partition, tid, tid, strong=True):
            found += deltas_of(batch.entries[tid - batch.first_id])
            break
        else:
            raise LogCorruptError(f"log partition {partition} has no entry {tid}, which a failed unit needs")
    return found
