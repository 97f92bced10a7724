"""The cases of KCL's protocol and of its first form (docs/kcl.md, *Multi-language protocol*). Pure data."""

from __future__ import annotations

from typing import Final

from kainite.base.record import RawRecord, payload_bytes
from kainite.child.events import Action
from kainite.conform.cases.case import (
    ONE_RECORD,
    Arrangement,
    Case,
    Checkpointing,
    EndOfInput,
    Refuse,
    ScriptedCall,
    Weight,
    Withheld,
)
from kainite.conform.cases.samples import BINARY, ODD_KEYS, ODD_TEXTS, Samples, padded, records
from kainite.leases.holding.checkpoint_requests import CheckpointErrorName
from kainite.settings import ChildProtocol

PIECES: Final = 10
COMPARED: Final = 4
"""Records of the case that compares arrangements."""

LARGE_PATIENCE: Final = 6.0
FAILURES: Final = (
    ("throttled", CheckpointErrorName.THROTTLING, 2),
    ("dependency", CheckpointErrorName.DEPENDENCY, 2),
    ("lease-stolen", CheckpointErrorName.SHUTDOWN, None),
    ("invalid-state", CheckpointErrorName.INVALID_STATE, None),
)
"""Names, errors, and how often each error is given; None means every time, because the condition does not pass."""

_INITIALIZE = ScriptedCall(Action.INITIALIZE)
_LEASE_LOST = ScriptedCall(Action.LEASE_LOST, checkpoint=Checkpointing.FORBIDDEN)
_SHARD_ENDED = ScriptedCall(Action.SHARD_ENDED, checkpoint=Checkpointing.REQUIRED)
_SHUTDOWN = ScriptedCall(Action.SHUTDOWN_REQUESTED, checkpoint=Checkpointing.WISE)
_FIRST: Final = "initialize"
_NEEDS: Final = (_FIRST, ONE_RECORD)


def json_lines_cases(dialect: ChildProtocol, samples: Samples, large: int) -> tuple[Case, ...]:
    """Returns all cases, in the order in which they are run.

    Args:
        dialect: the form of the protocol; the first has no ``shutdownRequested`` and does not say where reading begins.
        samples: payloads that the record processor understands.
        large: the payload of the large call, bytes.
    """
    cases = (
        *_calls(samples),
        *_odd(samples, large),
        *_checkpoints(samples),
        *_ends(samples),
        _same_deltas(samples, _SHARD_ENDED if dialect is ChildProtocol.JSON_LINES_V0 else _SHUTDOWN),
    )
    if dialect is ChildProtocol.JSON_LINES_V0:
        return tuple(case for case in cases if not _of_later_form(case))
    return cases


def _of_later_form(case: Case) -> bool:
    calls = [step for step in case.steps if isinstance(step, ScriptedCall)]
    return bool(calls) and (
        calls[0].start != _INITIALIZE.start or any(call.action is Action.SHUTDOWN_REQUESTED for call in calls)
    )


def _life(*calls: ScriptedCall) -> tuple[ScriptedCall, ...]:
    return (_INITIALIZE, *calls)


def _process(taken: tuple[RawRecord, ...], behind: int | None = 0) -> ScriptedCall:
    return ScriptedCall(Action.PROCESS_RECORDS, taken, behind=behind)


def _calls(samples: Samples) -> tuple[Case, ...]:
    one = _process(samples.records(1))
    at_number = ScriptedCall(Action.INITIALIZE, start=samples.records(1)[0].sequence, sub=3)
    without_number = ScriptedCall(Action.INITIALIZE, start=None, sub=None)
    several = [_process(samples.records(3, 3 * number), behind=9000 - 3000 * number) for number in range(4)]
    return (
        Case(_FIRST, "initialize at the stream's beginning", _life()),
        Case(ONE_RECORD, "one record", _life(one), (_FIRST,)),
        Case("initialize-at-number", "initialize at a sequence number", (at_number,), (_FIRST,)),
        Case("initialize-anew", "initialize without a sequence number", (without_number,), (_FIRST,)),
        Case("reads-first", "each request read before it is answered", _life(one, one, _SHARD_ENDED), (_FIRST,),
             held=Withheld.REQUESTS),
        Case("only-messages", "nothing but messages on standard output", _life(one, *several, _SHARD_ENDED), _NEEDS,
             strict_output=True),
        Case("many-records", "many records, some out of an aggregate",
             _life(_process((*samples.records(90), *samples.aggregated(10, 90)))), _NEEDS),
        Case("several-calls", "several calls one after another", _life(*several), _NEEDS),
        Case("empty-batch", "a call without records (callProcessRecordsEvenForEmptyRecordList)",
             _life(_process(()), one), _NEEDS, Weight.OPTIONAL),
    )  # fmt: skip


def _odd(samples: Samples, large: int) -> tuple[Case, ...]:
    texts = records([text.encode() for text in ODD_TEXTS])
    bulk = samples.large(large) if samples.own else padded(large, PIECES).records(PIECES)
    unknown = ScriptedCall(Action.PROCESS_RECORDS, samples.records(2), unknown_field=True)
    return (
        Case("odd-keys", "partition keys beyond ASCII, with quotes, U+2028", _life(_process(samples.keyed(ODD_KEYS))),
             _NEEDS),
        Case("empty-payload", "a record without a payload", _life(_process(records([b""]))), _NEEDS, Weight.REFUSABLE),
        Case("binary-payload", "payloads that are no text", _life(_process(records(BINARY))), _NEEDS, Weight.REFUSABLE),
        Case("odd-text", "payloads of text that is no delta", _life(_process(texts)), _NEEDS, Weight.REFUSABLE),
        Case("unknown-field", "records with a field that nobody knows", _life(unknown), _NEEDS, Weight.OPTIONAL),
        Case("large", f"{len(bulk)} records of {payload_bytes(bulk) / 1e6:.1f} MB in one call", _life(_process(bulk)),
             _NEEDS, patience=LARGE_PATIENCE),
    )  # fmt: skip


def _checkpoints(samples: Samples) -> tuple[Case, ...]:
    one = _process(samples.records(1))
    granted = Case(
        "checkpoint", "checkpoints that are granted", _life(one, _SHARD_ENDED), _NEEDS, held=Withheld.REPLIES
    )
    return (granted, *(_refused(samples, *failure) for failure in FAILURES))


def _refused(samples: Samples, name: str, error: CheckpointErrorName, times: int | None) -> Case:
    refuse = Refuse(error, times)
    process = ScriptedCall(Action.PROCESS_RECORDS, samples.records(1), refuse=refuse, may_end=True)
    end = ScriptedCall(Action.SHARD_ENDED, refuse=refuse, may_end=True)
    return Case(f"checkpoint-{name}", f"checkpoints that fail: {error.value}", _life(process, end), _NEEDS)


def _ends(samples: Samples) -> tuple[Case, ...]:
    process = _process(samples.records(2))
    return (
        Case("shard-ended", "the shard's end: checkpointed", _life(process, _SHARD_ENDED), _NEEDS),
        Case("empty-shard-ended", "the end of a shard without records: checkpointed", _life(_SHARD_ENDED), (_FIRST,)),
        Case("lease-lost", "the lease lost: no checkpoint", _life(process, _LEASE_LOST), _NEEDS),
        Case("lease-lost-at-once", "the lease lost before any record", _life(_LEASE_LOST), (_FIRST,)),
        Case("shutdown-requested", "asked to shut down", _life(process, _SHUTDOWN), _NEEDS),
        Case("shutdown", "asked to shut down, then the lease lost", _life(process, _SHUTDOWN, _LEASE_LOST), _NEEDS),
        Case("end-of-input", "its input ends: it ends too", (*_life(process), EndOfInput()), _NEEDS),
    )


def _same_deltas(samples: Samples, last: ScriptedCall) -> Case:
    """Returns the case that shows which deltas a child loses: each fault of a child shows in another arrangement."""
    taken, aggregate = samples.records(COMPARED), samples.aggregated(COMPARED, 0)
    each = [_process((record,)) for record in taken]
    arrangements = (
        Arrangement("in one call", (_life(_process(taken), last),)),
        Arrangement("in a call each", (_life(*each, last),)),
        Arrangement("alone, each to a child of its own", tuple(_life(one, last) for one in each)),
        Arrangement("as one aggregate", (_life(_process(aggregate), last),), renumbered=True),
    )
    return Case("same-deltas", "the same deltas, however the records come", (), _NEEDS, arrangements=arrangements)
