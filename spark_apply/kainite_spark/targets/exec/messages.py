"""What is said to a loader, and what its answers mean (docs/targets.md). Pure.

A request is a JSON object in ASCII, with its ``action`` first. An answer is whatever messages come before its
EOP: none for *done*, else objects of one field each, out of :class:`Reply`'s and these three:

* ``{"bad": cause}``: refused; nothing of the request is loaded;
* ``{"fenced": cause}``: somebody newer may write, this request's sender may not;
* ``{"retry": cause}``: not now, ask again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kainite.base.errors import ChildProtocolError, TargetFencedError, TargetRejectedError, TargetUnavailableError
from kainite.uow.delta import Delta, Json, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence

_CAUSE_LENGTH = 2_000
_SHOWN_LENGTH = 200

_REFUSALS = {"bad": TargetRejectedError, "fenced": TargetFencedError, "retry": TargetUnavailableError}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a loader may say beside *done*.

    Attributes:
        applied: which of the units that it was asked about it has; empty when it keeps no account.
        trimmed: how many acknowledgements it has deleted.
    """

    applied: frozenset[int] = frozenset()
    trimmed: int = 0


def prepare() -> bytes:
    """Make ready whatever acknowledgements and fences are kept in."""
    return _message("prepare", {})


def take_over(log_partition: str, generation: int) -> bytes:
    """From now on only ``generation`` and higher ones may write."""
    return _message("takeOver", {"logPartition": log_partition, "generation": generation})


def begin_micro_batch(fence: Fence) -> bytes:
    """From now on only this micro-batch of this generation may write."""
    return _message("beginMicroBatch", _fence(fence))


def applied(log_partition: str, tids: Collection[int]) -> bytes:
    """Which of these units are loaded?"""
    return _message("applied", {"logPartition": log_partition, "transactionIds": sorted(tids)})


def load(fence: Fence, unit: Unit, deltas: Sequence[Delta]) -> bytes:
    """Load a unit: ``deltas`` one after the other, all or none, with the acknowledgement."""
    fields = {**_fence(fence), "transactionId": unit.tid, "uow": unit.uow}
    return _message("load", {**fields, "deltas": [_delta(delta) for delta in deltas]})


def trim(fence: Fence, below: int) -> bytes:
    """Acknowledgements of units below ``below`` will not be asked for any more."""
    return _message("trim", {**_fence(fence), "below": below})


def read_answer(messages: Sequence[bytes]) -> Reply:
    """What an answer means.

    Raises:
        TargetRejectedError, TargetFencedError, TargetUnavailableError: the loader says so.
        ChildProtocolError: it said something that is no answer.
    """
    found = frozenset[int]()
    trimmed = 0
    for message in messages:
        match _object(message):
            case {"applied": [*tids]} if all(type(tid) is int for tid in tids):
                found |= frozenset(tids)
            case {"trimmed": int(count)}:
                trimmed += count
            case other:
                raise _refusal(other, message)
    return Reply(found, trimmed)


def _refusal(said: dict[str, Json], message: bytes) -> Exception:
    for name, error in _REFUSALS.items():
        if said.keys() == {name}:
            cause = " ".join(str(said[name]).split())[:_CAUSE_LENGTH]
            return error(cause or f"the loader answered {name!r} and no cause")
    return _junk(message)


def _object(message: bytes) -> dict[str, Json]:
    try:
        said = json.loads(message)
    except (ValueError, RecursionError):
        raise _junk(message) from None
    if not isinstance(said, dict) or len(said) != 1:
        raise _junk(message)
    return said


def _junk(message: bytes) -> ChildProtocolError:
    shown = message[:_SHOWN_LENGTH].decode("utf-8", "replace")
    return ChildProtocolError(
        f'said {shown!r}, which is no answer: say nothing, or one of {{"bad":…}}, {{"fenced":…}}, {{"retry":…}}, '
        '{"applied":[…]}, {"trimmed":…}'
    )


def _fence(fence: Fence) -> dict[str, Json]:
    return {
        "logPartition": fence.log_partition,
        "generation": fence.generation,
        "microBatch": fence.micro_batch,
    }


def _delta(delta: Delta) -> dict[str, Json]:
    """The delta as its child emitted it, but for its ordinal, and with the whole row of an insert or upsert."""
    whole = delta.op in (Operation.INSERT, Operation.UPSERT) and not delta.key.keys() <= delta.row.keys()
    row = {**delta.key, **delta.row} if whole else delta.row
    return replace(delta, row=row, ordinal=None).to_json()


def _message(action: str, fields: dict[str, Json]) -> bytes:
    # Not orjson: ASCII alone is read alike under every locale, and by line readers that split at U+2028.
    return json.dumps({"action": action, **fields}, separators=(",", ":")).encode("ascii")
