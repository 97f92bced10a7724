"""What people did: the records in the log, and those that wait in its inbox for an owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kainite.base.errors import LogError, LogUnavailableError
from kainite.log.contract import LogStore
from kainite.log.format.entry import OperationMeta, OperationResult
from kainite.log.state.loading import load_state
from kainite.owner.answering import RECORD
from kainite.owner.recording import about_of, asked_for


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """An operation of a person.

    Attributes:
        id: of the operation.
        at_ms: when it was asked for, milliseconds since the epoch.
        who, why: the person, and the reason that was given.
        what, about: the kind of operation, and what it is about.
        result: as :class:`~kainite.log.format.entry.OperationResult` has it.
        outcome: what has become of it, as a sentence; empty while nothing has.
        count, refused: of an operation on units that a filter selects: so many were changed, and so many not.
    """

    id: str
    at_ms: int
    who: str
    why: str
    what: str
    about: str
    result: str
    outcome: str = ""
    count: int = 0
    refused: int = 0


def read_history(store: LogStore, partition: str, since_ms: int = 0) -> list[OperationRecord]:
    """Returns the operations since a time, oldest first, as far back as the log remembers them.

    Who may not read the inbox does not see what the log's owner has not copied yet.

    Args:
        store, partition: the log.
        since_ms: milliseconds since the epoch.

    Raises:
        LogCorruptError, LogUnavailableError: the log cannot be read.
    """
    waiting = _inbox(store, partition)  # before the log, so that none is missed that is copied meanwhile
    known = {operation.id: operation for operation in load_state(store, partition).operations.all()}
    for request_id, request in waiting:
        operation = _waiting(request_id, request, known)
        if operation is not None:
            known[operation.id] = operation
    records = [_record(operation) for operation in known.values() if operation.at_ms >= since_ms]
    return sorted(records, key=lambda record: record.at_ms)


def _inbox(store: LogStore, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Returns what waits for the log's owner; nothing for who may read the log and not its inbox."""
    try:
        return store.read_requests(partition)
    except LogUnavailableError:
        raise
    except LogError:
        return ()


def _waiting(request_id: str, request: Mapping[str, str], known: Mapping[str, OperationMeta]) -> OperationMeta | None:
    """Returns an operation as a request in the inbox tells of it; None for one that tells nothing new."""
    if request.get("action") != RECORD:
        asked = asked_for(request_id, request, request.get("action", ""), about_of(request), OperationResult.ASKED)
        return None if request_id in known else asked
    of, told = request.get("of", request_id), request.get("result", "")
    result = OperationResult(told) if told in tuple(OperationResult) else OperationResult.ASKED
    new = asked_for(of, request, request.get("what", ""), request.get("about", ""), result, request.get("outcome", ""))
    before = known.get(of)
    if before is None:
        return new
    return new if before.result == OperationResult.ASKED else None


def _record(operation: OperationMeta) -> OperationRecord:
    return OperationRecord(
        operation.id, operation.at_ms, operation.who, operation.why, operation.what, operation.about,
        operation.result, operation.outcome, operation.count, operation.refused,
    )  # fmt: skip
