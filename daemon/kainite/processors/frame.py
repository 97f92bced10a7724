"""The frame of a record processor that emits deltas, on Amazon's own library (amazon_kclpy, v3 interface).

A record processor is a function from one record of the stream to its deltas and ends of units
(:data:`Transform`); :func:`run` does the rest. One process per shard reads KCL's json-lines from
stdin and writes its answers to stdout. The deltas go out on the same stdout, on ``emit`` lines
between a ``processRecords`` request and its status; the Java MultiLangDaemon skips such lines.

State: the shard's name and the time of the last checkpoint. A crash loses nothing: records after
the last checkpoint are delivered again, emitted again, and recognised by Kainite.

The library reads through :mod:`kainite.processors.requests`, which decodes a batch in its place.

The table says what becomes of each failure:

=============================================  ====================================================
the transform answers with :func:`refused`     the record's unit fails in the log, the shard goes on
a delta is too long for a line, or for an      the same
answer
the transform raises                           the process ends, with the reason on stderr, and the
                                               batch is delivered again: nothing is ever skipped
a checkpoint is throttled                      tried again with the next batch
a checkpoint is refused for another reason     the process ends
=============================================  ====================================================
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import orjson
from amazon_kclpy import kcl, messages
from amazon_kclpy.checkpoint_error import CheckpointError
from amazon_kclpy.v3 import processor

from kainite.base.errors import KainiteError
from kainite.base.garbage import collect_rarely
from kainite.base.value_class import value_class
from kainite.child.json_lines.dialect import MAX_EMITTED, MAX_LINE
from kainite.processors.requests import Answers, DeliveredRecord, Requests

CHECKPOINT_EVERY_S: Final = 1.0
DELTAS_PER_LINE: Final = 1000
LINE_BYTES: Final = 4 * 2**20
READ_BYTES: Final = 2**20
"""Bytes of requests that are read at once: as many as a pipe holds."""
AROUND: Final = 64
"""More bytes than a line has around an object."""
ROOM_FOR_CAUSES: Final = 16 * 2**20
"""Bytes of an answer that are kept for the causes of what does not fit in it."""
# Errors of a checkpoint that pass by themselves: the next checkpoint covers this one.
TRY_LATER: Final = frozenset({"ThrottlingException", "KinesisClientLibDependencyException"})
LAST_TRIES: Final = 10
TRY_AGAIN_S: Final = 0.5
LEASE_GONE: Final = "ShutdownException"
SHOWN: Final = 500

# Dates and dataclasses are refused, as by the standard library.
_AS_JSON: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS

Json: TypeAlias = Any
Emitted: TypeAlias = dict[str, Json]


@value_class(frozen=True, slots=True)
class Record:
    """One record of the stream.

    Attributes:
        data: the record's payload.
        partition_key: the partition key that the source gave.
        place: unique to the record, and the same whenever it is delivered: the name of a unit
            of work that has this record only.
        arrived: when the record arrived in the stream, epoch seconds by Kinesis' clock.
    """

    data: bytes
    partition_key: str
    place: str
    arrived: float = 0.0


Transform: TypeAlias = Callable[[Record], Sequence[Emitted]]
"""Returns the deltas and ends of one record; pure, so that a record delivered again gives the same again."""


def end_of(uow: str, count: int) -> Emitted:
    """Returns the end of a unit that has ``count`` deltas in all."""
    return {"uow": uow, "end": True, "count": count}


def refused(uow: str, cause: str, record: Record) -> Emitted:
    """Returns a refusal (docs/protocol.md): the log fails ``uow`` with the cause, and shows the record's beginning."""
    shown = record.data[:SHOWN].decode(errors="replace")
    return {"uow": uow, "refused": {"cause": cause, "place": record.place, "record": shown}}


Expect: TypeAlias = Callable[[Sequence[Record]], None]
"""Takes the records of a batch, before the first of them is transformed."""


def run(transform: Transform, expect: Expect = lambda records: None) -> None:
    """Runs the record processor of one shard, until the daemon closes stdin."""
    collect_rarely()
    answers = sys.stdout.buffer
    emitting = DeltaProcessor(transform, answers, expect=expect)
    with open(sys.stdin.fileno(), "rb", buffering=READ_BYTES, closefd=False) as lines:
        requests = Requests(lines, answers, lambda records: emitting.process(records, conversation.checkpointer))
        conversation = kcl.KCLProcess(emitting, requests)
        conversation.run()


class DeltaProcessor(processor.RecordProcessorBase):  # type: ignore[misc]  # kclpy is not typed
    """The record processor for Amazon's library; ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        transform: Transform,
        output: Answers,
        clock: Callable[[], float] = time.monotonic,
        expect: Expect = lambda records: None,
    ) -> None:
        self._transform = transform
        self._expect = expect
        self._output = output
        self._clock = clock
        self._checkpointed = clock()
        self._shard = ""

    def initialize(self, initialize_input: messages.InitializeInput) -> None:
        self._shard = initialize_input.shard_id

    def process_records(self, process_records_input: messages.ProcessRecordsInput) -> None:
        self.process(process_records_input.records, process_records_input.checkpointer)

    def process(
        self, records: Sequence[messages.Record] | Sequence[DeliveredRecord], checkpointer: kcl.Checkpointer
    ) -> None:
        """Emits the deltas of a batch; ends the process where that is not possible."""
        try:
            for line in _emit_lines(self._emitted(records)):
                self._output.write(line)
        except Exception as error:
            # kclpy reports success for a batch whose processor raised, and its records would be
            # skipped. Only an exit gets them delivered again.
            if isinstance(error, KainiteError):
                sys.exit(f"{type(error).__name__}: {error}")
            traceback.print_exc()
            sys.exit(1)
        if self._clock() - self._checkpointed >= CHECKPOINT_EVERY_S:
            self._checkpoint(checkpointer)

    def lease_lost(self, lease_lost_input: messages.LeaseLostInput) -> None:
        pass

    def shard_ended(self, shard_ended_input: messages.ShardEndedInput) -> None:
        self._checkpoint(shard_ended_input.checkpointer, tries=LAST_TRIES)

    def shutdown_requested(self, shutdown_requested_input: messages.ShutdownRequestedInput) -> None:
        self._checkpoint(shutdown_requested_input.checkpointer, tries=LAST_TRIES)

    def _emitted(self, records: Sequence[messages.Record] | Sequence[DeliveredRecord]) -> Iterator[Emitted]:
        shard = self._shard
        batch = [
            Record(
                one.binary_data,
                one.partition_key,
                f"{shard}:{one.sequence_number}.{one.sub_sequence_number}",
                one.timestamp_millis / 1000,
            )
            for one in records
        ]
        self._expect(batch)
        for record in batch:
            yield from self._transform(record)

    def _checkpoint(self, checkpointer: kcl.Checkpointer, tries: int = 1) -> None:
        """Checkpoints the last record delivered; the shard's end has to be tried until it is granted."""
        for left in reversed(range(tries)):
            try:
                checkpointer.checkpoint()
                self._checkpointed = self._clock()
                return
            except CheckpointError as error:
                if error.value == LEASE_GONE:
                    return
                if error.value not in TRY_LATER:
                    sys.exit(f"checkpoint refused: {error.value}")
            if left:
                time.sleep(TRY_AGAIN_S)


def _emit_lines(emitted: Iterator[Emitted]) -> Iterator[bytes]:
    """Yields the ``emit`` lines of one call, of at most :data:`DELTAS_PER_LINE` objects and, but for a single object,
    about :data:`LINE_BYTES` each.

    The daemon ends a child whose line, or whose answer to one call, is too long, and would deliver the batch again and
    again. So an object that does not fit fails its unit, with the reason, and the shard goes on.
    """
    room = MAX_EMITTED - ROOM_FOR_CAUSES
    while some := list(islice(emitted, DELTAS_PER_LINE)):
        # Far from both bounds a line's objects are written together: one by one they take a third more of the child.
        array = _array(some) if room > LINE_BYTES + AROUND * DELTAS_PER_LINE else b""
        if not array or len(array) > LINE_BYTES:
            yield from _cut_lines(chain(some, emitted), room)
            return
        room -= len(array) - len(some) - 1 + AROUND * len(some)  # brackets and commas are not the objects'
        yield _line(array)


def _cut_lines(emitted: Iterator[Emitted], room: int) -> Iterator[bytes]:
    """Yields the lines of :func:`_emit_lines`, each object of which is measured; ``room`` is left in the answer."""
    objects: list[bytes] = []
    size = 0
    for one in emitted:
        text = _json(one)
        length = len(text)
        if length > LINE_BYTES or length > room:
            text = _fitting(one, text, min(MAX_LINE - AROUND, room))
            length = len(text)
        room -= length + AROUND
        if objects and (len(objects) == DELTAS_PER_LINE or size + length > LINE_BYTES):
            yield _line(b"[%b]" % b",".join(objects))
            objects, size = [], 0
        objects.append(text)
        size += length
    if objects:
        yield _line(b"[%b]" % b",".join(objects))


def _line(array: bytes) -> bytes:
    return b'{"action":"emit","deltas":%b}\n' % array


def _fitting(one: Emitted, text: bytes, allowed: int) -> bytes:
    return text if len(text) <= allowed else _json(_too_long(one, len(text), allowed))


def _too_long(one: Emitted, length: int, allowed: int) -> Emitted:
    """Returns what fails the unit of an object that has no place in an answer."""
    cause = (
        f"a change of {one.get('table')} takes {length} bytes as a delta, and {max(allowed, 0)} are left: a line of a"
        f" record processor takes {MAX_LINE}, and its answer to one call {MAX_EMITTED}"
    )
    return {"uow": one["uow"], "refused": {"cause": cause}}


def _array(some: Sequence[Emitted]) -> bytes:
    """Returns objects as one JSON array, with the bytes that :func:`_json` gives of each."""
    text = _quick_json(some)
    return b"[%b]" % b",".join(map(_json, some)) if text is None else text


def _json(value: Json) -> bytes:
    """Returns a value as JSON, ASCII only."""
    text = _quick_json(value)
    return json.dumps(value, separators=(",", ":")).encode() if text is None else text


def _quick_json(value: Json) -> bytes | None:
    """Returns a value as JSON, ASCII only; None where the fast way does not come to the JSON of the standard library.

    It escapes no characters, writes null for what is no number, and takes no numbers beyond 64 bits and no names but
    text.
    """
    try:
        text = orjson.dumps(value, option=_AS_JSON)
    except TypeError:
        return None
    return text if text.isascii() and (b"null" not in text or orjson.loads(text) == value) else None
