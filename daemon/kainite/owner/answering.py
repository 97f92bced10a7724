"""Answers what people ask the log's owner for, by the inbox in the log's table.

=================  =============================================  ====================================================
action             does                                           decided in
=================  =============================================  ====================================================
retry, discard     resolves one failed unit (``uow``)             :mod:`kainite.owner.requests`
retry, discard     resolves those that a ``filter`` selects       :mod:`kainite.owner.bulk`
correct            dispatches a correction of a failed unit       :mod:`kainite.owner.correcting`
check-correction   judges such a correction, and appends nothing  the same
repair             dispatches rows as the source has them         :mod:`kainite.owner.repairing`
skip               gives up numbers that are awaited              :mod:`kainite.owner.skipping`
pause, resume      holds the apply job back, or lets it go on     :mod:`kainite.owner.pausing`
hand-over          lets another process own the log               below
record             notes what was done to something else than     below
                   the log: a lease, a duty
=================  =============================================  ====================================================

The entries that carry a request out stand in one batch with its record (:mod:`kainite.owner.recording`), also where it
is refused. The answer is written afterwards. A request whose answer was lost is met again by the same owner or the
next, is recognised by its id in that batch, and is answered again.

**Hand-over.** The owner records it, answers, and gives the log up: it releases the partition, and comes back only if
nobody has claimed it for a while (:mod:`kainite.peers.sharing.membership`). It does so too where the record's or the
answer's own answer was lost: what is recorded as done is done. A crash after the record leaves a log that others claim,
as any crash does; the next owner answers the request that it meets, and stays.

**Expiry.** A request that has waited for too long is refused before anything is done (:mod:`kainite.owner.expiry`).

**Records.** ``record`` is for operations that the log does not carry. Its request is durable in the inbox before the
operation is carried out, and so also where no owner is at work; the next one copies it into the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from kainite.base.clock import epoch_ms
from kainite.base.errors import KainiteError, LogCorruptError, LogRequestError
from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, EntryKind, OperationKind, OperationResult, StatusMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.bulk import KINDS, BulkOwner, BulkRequest
from kainite.owner.collected_stream import FORGET_STREAM, forget_stream
from kainite.owner.correcting import CHECK, CORRECT, check, correct
from kainite.owner.expiry import HAND_OVER, expire, has_expired
from kainite.owner.mount import Mount
from kainite.owner.pausing import PAUSE, RESUME, pause_or_resume
from kainite.owner.recording import asked_for, record, write_record
from kainite.owner.refit import is_kept, refit_entries
from kainite.owner.repairing import REPAIR, UnitsSince, read_since, repair
from kainite.owner.requests import OK, decide, refusal, unit_asked
from kainite.owner.skipping import SKIP, skip
from kainite.owner.target_outcomes import write_decision
from kainite.settings import UowSettings

_logger = logging.getLogger(__name__)

RECORD: Final = "record"


class AskedOwner(BulkOwner, Protocol):
    """The interface of the owner for the requests of people."""

    def give_up(self, why: str) -> None:
        """Ends the owner, so that another process may own the log at once."""


Answer = Mapping[str, str]


class Answering:
    """Answers the requests in the inbox of one log.

    Args:
        store, partition: the log's store, and the name of its log partition.
        rules: the settings by which units are collected and ordered.
        mounted: the owner's hold on the partition.
    """

    def __init__(self, store: LogStore, partition: str, rules: UowSettings, mounted: Mount) -> None:
        self._store = store
        self._partition = partition
        self._rules = rules
        self._mount = mounted
        self._hands_over: set[str] = set()  # requests that this owner has recorded as done, and not followed yet

    async def answer_all(self, owner: AskedOwner) -> None:
        """Carries out the requests in the inbox, in their order, and answers them.

        Raises:
            LogUnavailableError, LogFencedError: the rest is left to the next run, or to the next owner.
        """
        requests = await asyncio.to_thread(self._store.read_requests, self._partition)
        for request_id, request in requests:
            answer = await self._carry_out(owner, request_id, request)
            if answer is None:
                continue  # more is to be done, in the next run
            try:
                await asyncio.to_thread(self._store.answer_request, self._partition, request_id, answer)
            finally:
                hands_over = request_id in self._hands_over
                self._hands_over.discard(request_id)
                if hands_over:
                    owner.give_up(f"the log is handed over, as {request.get('by', 'somebody')} has asked")
            if hands_over:
                return

    async def _carry_out(self, owner: AskedOwner, request_id: str, request: Mapping[str, str]) -> Answer | None:
        """Appends what a request asks for, if the state allows it; returns the answer once that is durable."""
        now = epoch_ms()
        if has_expired(owner.state, request_id, request, now):
            return await self._write(owner, lambda journal: expire(journal, request_id, request, now))
        match request.get("action"):
            case "retry" | "discard" if "filter" in request:
                return await self._carry_out_bulk(owner, request_id, request)
            case "retry" | "discard":
                return await self._resolve(owner, request_id, request)
            case action if action == CORRECT:
                signing = await owner.refitting.latest() if owner.refitting else None
                return await self._write(
                    owner, lambda journal: correct(journal, request_id, request, self._rules, signing)
                )
            case action if action == CHECK:
                signing = await owner.refitting.latest() if owner.refitting else None
                return await self._write(owner, lambda journal: check(journal.state, request, self._rules, signing))
            case action if action == REPAIR:
                signing = await owner.refitting.latest() if owner.refitting else None
                seen = await self._read_since(owner, request)
                return await self._write(
                    owner, lambda journal: repair(journal, request_id, request, self._rules, signing, seen)
                )
            case action if action == SKIP:
                return await self._write(owner, lambda journal: self._skip(journal, request_id, request))
            case action if action in (PAUSE, RESUME):
                return await self._write(owner, lambda journal: pause_or_resume(journal, request_id, request))
            case action if action == HAND_OVER:
                return await self._write(owner, lambda journal: self._hand_over(journal, request_id, request))
            case action if action == FORGET_STREAM:
                return await self._write(owner, lambda journal: forget_stream(journal, request_id, request))
            case action if action == RECORD:
                return await self._write(owner, lambda journal: _record(journal, request_id, request))
            case action:
                return refusal(f"unknown action {action!r}")

    async def _carry_out_bulk(self, owner: AskedOwner, request_id: str, request: Mapping[str, str]) -> Answer | None:
        try:
            return await BulkRequest(request_id, request, self._rules).run(owner)
        except LogRequestError as error:
            return refusal(str(error))
        except KainiteError:
            raise
        except Exception as error:
            return _broken(error)

    async def _resolve(self, owner: AskedOwner, request_id: str, request: Mapping[str, str]) -> Answer:
        unit = unit_asked(owner.state, request) if request.get("action") == "retry" else None
        entries = unit.entries if unit else ()
        try:
            anew = await owner.refitting.judged(unit) if owner.refitting and unit and is_kept(unit) else None
        except LogCorruptError as error:
            # A later owner may have removed the entries that this read needs. Then the renewal finds its claim, and
            # raises.
            await asyncio.to_thread(self._mount.renew)
            return refusal(f"unit {request.get('uow')} cannot be judged anew: {error}; discard it, and send it again")

        def decided(journal: Journal) -> Answer:
            state = journal.state
            if request_id in state.answered:
                return {"result": OK, "message": "done before"}
            decision = decide(state, request_id, request, anew[1] if anew else None)
            answer, outcome = decision.answer, decision.outcome
            now = state.units.get(outcome.tid) if outcome is not None else None
            if outcome is not None and now is not None and anew is not None and now.entries != entries:
                answer, outcome = refusal(f"more of unit {now.uow} came while it was judged: retry it again"), None
            if outcome is not None and now is not None and anew is not None and is_kept(now):
                refit_entries(journal, self._rules, now, *anew)
            if outcome is not None or "again" not in request:
                _note(journal, request_id, request, answer)
            if outcome is not None:
                write_decision(journal, request_id, outcome, request.get("target", ""))
            return answer

        return await self._write(owner, decided)

    async def _read_since(self, owner: AskedOwner, request: Mapping[str, str]) -> UnitsSince:
        low, next_id = self._mount.head.low_water_mark, owner.state.next_id
        try:
            return await asyncio.to_thread(read_since, self._store, self._partition, request, low, next_id)
        except LogCorruptError as error:
            # A later owner may have removed the entries that this read needs: as in :meth:`_resolve`.
            await asyncio.to_thread(self._mount.renew)
            return UnitsSince(-1, refused=f"the units behind the point cannot be read: {error}")

    def _skip(self, journal: Journal, request_id: str, request: Mapping[str, str]) -> Answer:
        before = request_id in journal.state.answered
        answer = skip(journal, self._rules, request_id, request)
        if not before:
            about = f"up to {request.get('number', '')}"
            record(journal, request_id, request, OperationKind.SKIP, about, answer)
        return answer

    def _hand_over(self, journal: Journal, request_id: str, request: Mapping[str, str]) -> Answer:
        if request_id in journal.state.answered:
            return {"result": OK, "message": "the log was released, and is owned again"}
        answer = {"result": OK, "message": "the log is released, for another process to own it"}
        record(journal, request_id, request, OperationKind.HAND_OVER, "", answer)
        journal.write(EntryKind.STATUS, StatusMeta(requests=(request_id,)))
        self._hands_over.add(request_id)
        return answer

    async def _write(self, owner: AskedOwner, decide: Callable[[Journal], Answer]) -> Answer:
        """Appends what a request decides; returns a refusal where deciding breaks, so that no other owner meets it."""
        answer: Answer = {}

        def decided(state: FoldedLog) -> Sequence[Entry]:
            nonlocal answer
            journal = Journal(state, epoch_ms())
            answer = decide(journal)
            return journal.entries

        try:
            await owner.write(decided)
        except KainiteError:
            raise
        except Exception as error:
            return _broken(error)
        return answer


def _broken(error: Exception) -> Answer:
    """Returns the refusal of a request on which deciding breaks, so that no other owner meets it."""
    _logger.exception("request refused")
    return refusal(f"the log's owner cannot decide on the request, an error in Kainite: {error!r}")


def _note(journal: Journal, request_id: str, request: Mapping[str, str], answer: Answer) -> None:
    """Writes the record of a request about one unit."""
    what = KINDS[request["action"]]
    where = f" in {target}" if (target := request.get("target")) else ""
    record(journal, request_id, request, what, f"unit {request.get('uow', '')}{where}", answer)


def _record(journal: Journal, request_id: str, request: Mapping[str, str]) -> Answer:
    """Notes an operation, or what has become of one, which the request names as ``of``."""
    told, what = request.get("result", OperationResult.ASKED), request.get("what", "")
    result = OperationResult(told) if told in tuple(OperationResult) else OperationResult.ASKED
    if what in (OperationKind.PAUSE, OperationKind.RESUME):
        return refusal("a pause is no record: ask for it")
    outcome = request.get("outcome", "")
    noted = asked_for(request.get("of", request_id), request, what, request.get("about", ""), result, outcome)
    asked = journal.state.operations.find(noted.id)
    if asked is not None and asked.what in (OperationKind.PAUSE, OperationKind.RESUME):
        return refusal("a pause has its outcome: no record changes it")
    if asked is not None:
        noted = msgspec.structs.replace(asked, result=noted.result, outcome=noted.outcome)
    write_record(journal, noted)
    return {"result": OK, "message": "recorded"}
