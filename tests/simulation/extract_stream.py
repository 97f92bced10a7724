"""A Kinesis stream that is written to: PutRecords refuses some records, or all of a shard, and answers may be lost.

=====================  ===============================================================================================
what happens           to a PutRecords call
=====================  ===============================================================================================
a fault at an effect   it comes late, twice, never, or its answer does not come (``simulation.faults``)
``put_partial``        some of its records are refused, the others are on the stream
outage ``shard N``     all records of the shard are refused: it is throttled
=====================  ===============================================================================================
"""

# ruff: noqa: N803 - the arguments are Kinesis's
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from simulation.faults import Effects, Faults
from simulation.loop import Hub, Process, SimThread
from simulation.stream import SimKinesis, SimStream, unanswered

_MAGIC = bytes([0xF3, 0x89, 0x9A, 0xC2])


class WritableKinesis(SimKinesis):
    """boto3's Kinesis client, in a process that puts records; ``stored`` is told of each that is on the stream."""

    def __init__(self, stream: SimStream, faults: Faults, process: Process, stored: Callable[[bytes], None]) -> None:
        super().__init__({"s": stream}, faults, process)
        self._stream = stream
        self._stored = stored
        self._puts = Effects(faults, process, "kinesis", unanswered, pace=0.05)

    def put_records(self, *, Records: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        return self._puts.call("put_records", lambda: self._put(Records))

    def _put(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        name = self._faults.named(f"{self._name} put")
        partial = self._faults.hub.now < self._faults.until and (
            self._faults.chance("partial", name) < self._faults.rates.get("put_partial", 0.0)
            and self._faults.happens(f"put_partial {name}")
        )
        results = [self._put_one(entry, partial and self._faults.chance("refused", name, place) < 0.5)
                   for place, entry in enumerate(entries)]  # fmt: skip
        return {"Records": results, "FailedRecordCount": sum("ErrorCode" in result for result in results)}

    def _put_one(self, entry: dict[str, Any], refused: bool) -> dict[str, str]:
        hash_key = int(entry["ExplicitHashKey"])
        shard = self._stream.shard_of(hash_key).name
        if refused or self._faults.away(f"shard {int(shard[-12:])}"):
            return {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "throttled"}
        self._stream.put(hash_key, entry["Data"])
        for message in unpacked(entry["Data"]):
            self._stored(message)
        return {"ShardId": shard, "SequenceNumber": "1"}


class SimPool:
    """Stands for ``ThreadPoolExecutor``: each work has a thread of the process, and the end waits for all."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._threads: list[SimThread] = []

    def __enter__(self) -> SimPool:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    def submit(self, work: Callable[..., object], *given: Any) -> _Outcome:
        outcome = _Outcome()

        def tried() -> None:
            try:
                work(*given)
            except Exception as error:
                outcome.error = error

        thread = SimThread(target=tried, hub=self._hub)
        self._threads.append(thread)
        thread.start()
        return outcome


class _Outcome:
    """Stands for a future of a work without a result."""

    error: Exception | None = None

    def exception(self) -> Exception | None:
        return self.error


def unpacked(data: bytes) -> list[bytes]:
    """Returns the messages of a record: those of a KPL aggregate, or the one that it is."""
    if not data.startswith(_MAGIC):
        return [data]
    body = data[len(_MAGIC) : -16]
    return [value for field, record in _fields(body) if field == 3 for number, value in _fields(record) if number == 3]


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the fields of a protobuf message that are bytes, by their numbers."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        size, at = _varint(message, at)
        if tag & 7 == 2:
            yield tag >> 3, message[at : at + size]
            at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at
