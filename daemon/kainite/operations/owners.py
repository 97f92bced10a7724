"""Operations that the log's owner carries out on the log itself: what they would do, and how the owner is asked."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from kainite.base.words import counted
from kainite.log.contract import LogStore
from kainite.log.format.entry import OperationResult
from kainite.operations.inbox import Asker, leave, take_answer, this_person
from kainite.operations.operation import (
    MOST_CORRECTION,
    CorrectUnit,
    HandOverLog,
    OperationOutcome,
    OwnersOperation,
    PauseApply,
    Preview,
    RepairRows,
    ResumeApply,
    SkipNumbers,
)
from kainite.owner.collected_stream import FORGET_STREAM
from kainite.owner.correcting import CHECK, CORRECT
from kainite.owner.expiry import HAND_OVER
from kainite.owner.pausing import PAUSE, RESUME
from kainite.owner.repairing import REPAIR
from kainite.owner.requests import OK, refusal
from kainite.owner.skipping import SKIP
from kainite.uow import exact_json


def ask_owner(
    store: LogStore, partition: str, operation: OwnersOperation, asker: Asker, timeout: float
) -> OperationOutcome:
    """Has the log's owner carry an operation out; returns its answer.

    Args:
        store, partition: the log.
        operation: what is done.
        asker: who asks, and why.
        timeout: seconds to wait for the answer.

    Raises:
        LogUnavailableError: no answer came in time; the request stays until it expires, for the next owner.
    """
    if isinstance(operation, CorrectUnit | RepairRows) and (told := _too_large(operation)):
        return OperationOutcome(OperationResult.REFUSED, told)
    about, request = _request(operation)
    answer = take_answer(store, partition, leave(store, partition, about, request, asker), 0, timeout)
    result = OperationResult.DONE if answer["result"] == OK else OperationResult.REFUSED
    met = frozenset(map(int, filter(None, answer["met"].split(",")))) if "met" in answer else None
    return OperationOutcome(result, answer["message"], met=met)


def await_no_more(store: LogStore, partition: str, stream: str, asker: Asker, timeout: float) -> str:
    """Has the log's owner await a stream no more; returns its answer. Errors as those of :func:`ask_owner`."""
    request = {"action": FORGET_STREAM, "stream": stream}
    left = leave(store, partition, f"stream {stream}", request, asker)
    return take_answer(store, partition, left, 0, timeout)["message"]


def array_of_deltas(data: bytes) -> str:
    """Returns the array of deltas in JSON, as text: an array, or an object that has one; numbers stay as written.

    Raises:
        ValueError: there is none.
    """
    found = exact_json.loads(data)
    array = found.get("deltas") if isinstance(found, dict) else found
    if not isinstance(array, list):
        raise ValueError("it has no array of deltas")
    return orjson.dumps(array).decode()


def _checked(store: LogStore, partition: str, operation: CorrectUnit, timeout: float) -> Mapping[str, str]:
    """Has the owner judge a correction; returns what it would answer."""
    if told := _too_large(operation):
        return refusal(told)
    about, request = _request(operation)
    left = leave(store, partition, f"the check of {about}", {**request, "action": CHECK}, Asker(this_person()))
    return take_answer(store, partition, left, 0, timeout)


def _too_large(operation: CorrectUnit | RepairRows) -> str:
    if len(operation.deltas.encode()) <= MOST_CORRECTION:
        return ""
    instead = (
        "let the source send the correction"
        if isinstance(operation, CorrectUnit)
        else "load the table anew (kainite replicate reload), or repair some tables alone (--table)"
    )
    return f"the deltas are larger than {MOST_CORRECTION} bytes: {instead}"


def _request(operation: OwnersOperation) -> tuple[str, dict[str, str]]:
    """Returns what a request to the owner is about, and the request."""
    match operation:
        case CorrectUnit(unit, name, deltas):
            return f"the correction of unit {unit}", {"action": CORRECT, "uow": unit, "name": name, "deltas": deltas}
        case RepairRows(name, since, rows, deltas):
            told = {"action": REPAIR, "name": name, "since": str(since), "rows": str(rows), "deltas": deltas}
            return f"the repair {name}", told
        case SkipNumbers(last):
            return f"number {last}", {"action": SKIP, "number": str(last)}
        case PauseApply():
            return "the pause", {"action": PAUSE}
        case ResumeApply():
            return "the end of the pause", {"action": RESUME}
        case HandOverLog():
            return "the hand-over", {"action": HAND_OVER}


def preview_owners(store: LogStore, partition: str, operation: OwnersOperation, timeout: float) -> Preview:
    """Returns what an operation of the log's owner would do; a correction is judged by the owner, and not sent.

    Raises:
        LogUnavailableError: the owner has not answered in time.
    """
    match operation:
        case CorrectUnit(unit, name):
            answer = _checked(store, partition, operation, timeout)
            sound = answer["result"] == OK
            return Preview(
                f"append {name} to the log, a correction that takes the place of unit {unit}: when it is applied, "
                f"{unit} is discarded, and the units that wait for {unit} follow it",
                details=(answer["message"],) if sound else (),
                refusal="" if sound else answer["message"],
            )
        case RepairRows(name, _, rows):
            return Preview(f"append unit {name} to the log, which sets {counted(rows, 'row')} to what the source has")
        case SkipNumbers(last):
            return Preview(
                f"no longer wait for units with numbers up to {last}: the units behind them go, and a unit that still "
                "comes with one of them fails"
            )
        case PauseApply():
            return Preview(
                "apply no unit to the target until applying is resumed: units wait in the log, and reading stops when "
                "the log is full (logBacklogUnits, logBacklogBytes)"
            )
        case ResumeApply():
            return Preview("apply units again, in the log's order", asks=False)
        case HandOverLog():
            return Preview(
                "the log gets another owner, and this one again where no other process is there: for some seconds "
                "nothing is appended; nothing is lost or repeated"
            )
