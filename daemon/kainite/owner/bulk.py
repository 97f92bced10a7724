"""Retries or discards the failed units that a filter selects: one request, some units at a time.

The request is ``{"action": "retry" | "discard", "filter": JSON, "expected": N, "by": WHO, "why": WHY}``; the filter is
a :class:`~kainite.log.state.unit_filter.UnitFilter`. ``expected`` may be missing: the person has confirmed N units, and
a request that now selects more changes nothing.

The units are taken in the log's order, each at most once. The record of the request says how far it is (``through``),
and stands in the same batch as the outcomes of the units up to there. Units that are dispatched after the request was
begun (``below``) are not among its units; a unit of it that fails again is not retried again.

=========================  ============================================  ==============================================
after the step             the log has                                   a crash
=========================  ============================================  ==============================================
request in the inbox       nothing                                       the next owner begins
first units appended       their outcomes, the record ``asked`` with     the next owner finds the record, and goes on
                           its ``through``                               behind ``through``
last units appended        their outcomes, the record ``done``, the id   the next owner answers again
                           of the request among the answered ones
=========================  ============================================  ==============================================

A run ends after :data:`RUN_S` seconds and goes on at the owner's next look at the inbox, so that many units, of which
some must be judged anew, keep neither outcomes nor other requests waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogCorruptError, LogRequestError
from kainite.log.format.entry import (
    Entry,
    EntryKind,
    OperationKind,
    OperationMeta,
    OperationResult,
    Outcome,
    StatusMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.unit_filter import filter_from
from kainite.log.state.unit_state import UnitState
from kainite.owner.entry_writer import EntryWriter
from kainite.owner.recording import asked_for, write_record
from kainite.owner.refit import Refitting, is_kept, refit_entries
from kainite.owner.requests import OK, decide_on, refusal
from kainite.settings import Isolation, UowSettings
from kainite.uow.signing import SignedDeltas, Signing

CHUNK: Final = 200
"""The most units that one decision resolves."""

DELTAS: Final = 20_000
"""The most deltas of them, unless one unit has more: those of units that are judged anew are written again."""

LOOKED: Final = 5_000
"""After so many units that are looked at, others have their turn."""

RUN_S: Final = 1.0
"""The most seconds of one run, apart from the units that are under way."""

KINDS: Final[Mapping[str, OperationKind]] = {"retry": OperationKind.RETRY, "discard": OperationKind.DISCARD}


_Judged: TypeAlias = tuple[UnitState, Signing, SignedDeltas]


class BulkOwner(EntryWriter, Protocol):
    """The interface of the owner for requests about many units."""

    refitting: Refitting | None


class BulkRequest:
    """A request about the units that a filter selects.

    Args:
        request_id, request: as they stand in the inbox.
        rules: the settings by which units are ordered.

    Raises:
        LogRequestError: the request is none.
    """

    def __init__(self, request_id: str, request: Mapping[str, str], rules: UowSettings) -> None:
        self._id = request_id
        self._request = request
        self._rules = rules
        self._action = request.get("action", "")
        if self._action not in KINDS:
            raise LogRequestError(f"unknown action {self._action!r}")
        if request.get("target"):
            raise LogRequestError("a filter selects whole units: name those whose part in one target is meant")
        self._wanted = filter_from(request.get("filter", ""))
        if self._wanted.tables and rules.isolation is not Isolation.SERIALIZE:
            raise LogRequestError("the log does not note which tables a unit touches: select units otherwise")

    async def run(self, owner: BulkOwner) -> Mapping[str, str] | None:
        """Resolves units for a while; returns the answer, or None where more units are left for the next run."""
        state = owner.state
        if self._id in state.answered:
            return {"result": OK, "message": "done before"}
        known = state.operations.find(self._id)
        begun = known or self._begun(state)
        left = [unit async for unit in _slowly(self._selected(state, begun))]
        if known is None and (refused := self._too_many(len(left))) is not None:
            await owner.write(lambda state: self._ended(state, begun, OperationResult.REFUSED, refused))
            return refusal(refused)
        until = time.monotonic() + RUN_S
        for chunk in _chunks(left):
            begun = await self._resolve(owner, begun, chunk)
            if time.monotonic() > until and chunk[-1] != left[-1].tid:
                return None
        message = self._message(begun)
        await owner.write(lambda state: self._ended(state, begun, OperationResult.DONE, message))
        return {"result": OK, "message": message, "count": str(begun.count), "refused": str(begun.refused)}

    def _begun(self, state: FoldedLog) -> OperationMeta:
        about = self._wanted.in_words()
        record = asked_for(self._id, self._request, KINDS[self._action], about, OperationResult.ASKED)
        return msgspec.structs.replace(record, below=state.next_id)

    def _selected(self, state: FoldedLog, begun: OperationMeta) -> Iterator[UnitState | None]:
        """Yields the units that are left, and None for each other unit that was looked at."""
        for tid in tuple(state.units):
            unit = state.units.get(tid)
            yield unit if unit is not None and self._takes(unit, begun) else None

    def _takes(self, unit: UnitState, begun: OperationMeta) -> bool:
        in_turn = begun.through < unit.tid < begun.below
        return in_turn and unit.status is UnitStatus.FAILED and self._wanted.takes(unit)

    def _too_many(self, found: int) -> str | None:
        expected = self._request.get("expected", "")
        if not expected.isdecimal() or found <= int(expected):
            return None
        return f"{found} units are selected by now, not {expected}: look again, and confirm that number"

    async def _resolve(self, owner: BulkOwner, begun: OperationMeta, tids: Sequence[int]) -> OperationMeta:
        """Resolves some units with one append; returns the record as it is then."""
        anew = await self._judged(owner, tids) if self._action == "retry" else {}
        after = begun

        def decided(state: FoldedLog) -> Sequence[Entry]:
            nonlocal after
            journal = Journal(state, epoch_ms())
            outcomes = [self._outcome(journal, begun, tid, anew) for tid in tids]
            changed = tuple(outcome for outcome in outcomes if outcome is not None)
            after = msgspec.structs.replace(
                begun,
                count=begun.count + len(changed),
                refused=begun.refused + len(tids) - len(changed),
                through=tids[-1],
            )
            if changed:
                journal.write(EntryKind.STATUS, StatusMeta(changed))
            write_record(journal, after)
            return journal.entries

        await owner.write(decided)
        return after

    async def _judged(self, owner: BulkOwner, tids: Iterable[int]) -> dict[int, _Judged]:
        """Judges those of the units anew whose retry needs that; one that cannot be judged is left out."""
        kept = [unit for tid in tids if (unit := owner.state.units.get(tid)) is not None and is_kept(unit)]
        found: dict[int, _Judged] = {}
        if owner.refitting is None or not kept:
            return found
        signing = await owner.refitting.latest()
        for unit in kept:
            with contextlib.suppress(LogCorruptError):
                found[unit.tid] = unit, signing, await owner.refitting.judge(unit, signing)
        return found

    def _outcome(
        self,
        journal: Journal,
        begun: OperationMeta,
        tid: int,
        anew: Mapping[int, _Judged],
    ) -> Outcome | None:
        """Decides on one unit, and writes it anew where that is needed; returns None where it stays as it is."""
        unit = journal.state.units.get(tid)
        if unit is None or not self._takes(unit, begun):
            return None
        before, signing, judged = anew.get(tid, (None, None, None))
        if before is not None and before.entries != unit.entries:
            return None  # more of the unit came while it was judged
        outcome = decide_on(journal.state, unit, self._request, judged).outcome
        if outcome is not None and signing is not None and judged is not None and is_kept(unit):
            refit_entries(journal, self._rules, unit, signing, judged)
        return outcome

    def _ended(self, state: FoldedLog, begun: OperationMeta, result: OperationResult, message: str) -> Sequence[Entry]:
        journal = Journal(state, epoch_ms())
        write_record(journal, msgspec.structs.replace(begun, result=result, outcome=message))
        journal.write(EntryKind.STATUS, StatusMeta(requests=(self._id,)))
        return journal.entries

    def _message(self, record: OperationMeta) -> str:
        units = f"{record.count} unit{'s' * (record.count != 1)}"
        done = f"{units} will be applied again" if self._action == "retry" else f"{units} discarded"
        return done + (f"; {record.refused} refused: name one to be told why" if record.refused else "")


async def _slowly(units: Iterator[UnitState | None]) -> AsyncIterator[UnitState]:
    """Yields the units; lets others have their turn meanwhile."""
    for number, unit in enumerate(units, 1):
        if unit is not None:
            yield unit
        if number % LOOKED == 0:
            await asyncio.sleep(0)


def _chunks(units: Iterable[UnitState]) -> Iterator[list[int]]:
    """Yields the units' transaction ids, as many at a time as one decision resolves."""
    some: list[int] = []
    deltas = 0
    for unit in units:
        if some and (len(some) == CHUNK or deltas + unit.count > DELTAS):
            yield some
            some, deltas = [], 0
        some.append(unit.tid)
        deltas += unit.count
    if some:
        yield some
