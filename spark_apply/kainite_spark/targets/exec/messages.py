"""The requests to a loader, and the meaning of its answers (docs/targets.md). Pure.

A request is a JSON object in ASCII, with its ``action`` first. An answer is all messages before its EOP: none
for *done*, otherwise objects of one field each, which is a field of :class:`LoaderReply` or one of these:

* ``{"bad": cause}``: refused; nothing of the request is loaded;
* ``{"fenced": cause}``: a newer job or micro-batch may write, the sender of this request may not;
* ``{"retry": cause}``: not possible now; the request may come again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kainite.base.errors import ChildProtocolError, TargetFencedError, TargetInterruptedError, TargetRejectedError
from kainite.base.redaction import redacted
from kainite.uow.delta import Delta, Json, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence

_CAUSE_LENGTH = 2_000
_SHOWN_LENGTH = 200

_REFUSALS = {"bad": TargetRejectedError, "fenced": TargetFencedError, "retry": TargetInterruptedError}


@dataclass(frozen=True, slots=True)
class LoaderReply:
    """The contents of an answer beside *done*.

    Attributes:
        applied: which of the units in question are loaded; empty from a loader without acknowledgements.
        trimmed: how many acknowledgements the loader has deleted.
    """

    applied: frozenset[int] = frozenset()
    trimmed: int = 0


def prepare() -> bytes:
    """Returns the request to create the tables for acknowledgements and fences."""
    return _message("prepare", {})


def take_over(log_partition: str, generation: int) -> bytes:
    """Returns the request to let only ``generation`` and higher ones write from now on."""
    return _message("takeOver", {"logPartition": log_partition, "generation": generation})


def begin_micro_batch(fence: Fence) -> bytes:
    """Returns the request to let only this micro-batch of this generation write from now on."""
    return _message("beginMicroBatch", _fence(fence))


def applied(log_partition: str, tids: Collection[int]) -> bytes:
    """Returns the question which of these units are loaded."""
    return _message("applied", {"logPartition": log_partition, "transactionIds": sorted(tids)})


def load(fence: Fence, unit: Unit, deltas: Sequence[Delta]) -> bytes:
    """Returns the request to load a unit: ``deltas`` in this order, all or none, with the acknowledgement."""
    fields = {**_fence(fence), "transactionId": unit.tid, "uow": unit.uow}
    return _message("load", {**fields, "deltas": [_delta(delta) for delta in deltas]})


def trim(fence: Fence, below: int) -> bytes:
    """Returns the request to let no task write under a lower number than ``fence`` has, then to forget the
    acknowledgements of units below ``below``."""
    return _message("trim", {**_fence(fence), "below": below})


def common_mark(fence: Fence, everywhere_below: int) -> bytes:
    """Returns the request to let no task write under a lower number than ``fence`` has, then to note the common mark of
    several targets; a loader that keeps none answers that it is done."""
    return _message("mark", {**_fence(fence), "everywhereBelow": everywhere_below})


def read_answer(messages: Sequence[bytes]) -> LoaderReply:
    """Returns what an answer says.

    Raises:
        TargetRejectedError, TargetFencedError, TargetInterruptedError: the loader says so.
        ChildProtocolError: the messages are no valid answer.
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
    return LoaderReply(found, trimmed)


def _refusal(said: dict[str, Json], message: bytes) -> Exception:
    for name, error in _REFUSALS.items():
        if said.keys() == {name}:
            cause = redacted(" ".join(str(said[name]).split()))[:_CAUSE_LENGTH]
            return error(cause or f"the loader answered {name!r} without a cause")
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
    shown = redacted(message.decode("utf-8", "replace"))[:_SHOWN_LENGTH]
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
    """Returns the delta as its record processor emitted it, without its ordinal; an insert's row includes its key."""
    whole = delta.op in (Operation.INSERT, Operation.UPSERT) and not delta.key.keys() <= delta.row.keys()
    row = {**delta.key, **delta.row} if whole else delta.row
    return replace(delta, row=row, ordinal=None).to_json()


def _message(action: str, fields: dict[str, Json]) -> bytes:
    # Not orjson, which writes UTF-8: ASCII reads the same under every locale, and line readers that split at U+2028
    # do not break it.
    return json.dumps({"action": action, **fields}, separators=(",", ":")).encode("ascii")
