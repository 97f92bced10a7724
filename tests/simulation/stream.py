"""A Kinesis stream: shards that split and merge, iterators, replies that are cut anywhere.

:class:`SimStream` is the stream itself. :class:`SimKinesis` is what one process has of it: boto3's client, as far as
:class:`kainite.kinesis.client.StreamClient` uses it.
"""

# ruff: noqa: N803 - the arguments are Kinesis's
from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from simulation.faults import Effects, Faults
from simulation.loop import EPOCH, Hub, Process

TOP = 2**128 - 1


@dataclass(slots=True)
class SimShard:
    """A shard; ``records`` are (sequence number, data, arrival), in order."""

    name: str
    start: int
    end: int
    parents: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    closed: bool = False
    records: list[tuple[int, bytes, float]] = field(default_factory=list)


class SimStream:
    """The stream, which outlives every process."""

    def __init__(self, hub: Hub, shards: int) -> None:
        self._hub = hub
        self.shards: dict[str, SimShard] = {}
        self.is_read = False
        """Whether somebody has begun to read a shard."""
        self._sequence = 49_000_000_000
        width = (TOP + 1) // shards
        for number in range(shards):
            self._add(number * width, TOP if number == shards - 1 else (number + 1) * width - 1, ())

    @property
    def open(self) -> list[SimShard]:
        return [shard for shard in self.shards.values() if not shard.closed]

    def put(self, hash_key: int, data: bytes) -> None:
        """Appends a record to the shard that holds the hash key."""
        shard = next(shard for shard in self.open if shard.start <= hash_key <= shard.end)
        self._sequence += 7
        shard.records.append((self._sequence, data, EPOCH + self._hub.now))

    def split(self, shard: SimShard) -> None:
        middle = (shard.start + shard.end) // 2
        if shard.closed or shard.end - shard.start < 4:
            return
        shard.closed = True
        children = [self._add(shard.start, middle, (shard.name,)), self._add(middle + 1, shard.end, (shard.name,))]
        shard.children = tuple(child.name for child in children)

    def merge(self, one: SimShard, other: SimShard) -> None:
        """Merges two shards whose hash keys are neighbours."""
        if one.closed or other.closed or one.end + 1 != other.start:
            return
        one.closed = other.closed = True
        child = self._add(one.start, other.end, (one.name, other.name))
        one.children = other.children = (child.name,)

    def _add(self, start: int, end: int, parents: tuple[str, ...]) -> SimShard:
        shard = SimShard(f"shardId-{len(self.shards):012}", start, end, parents)
        self.shards[shard.name] = shard
        return shard


class SimKinesis:
    """boto3's Kinesis client, in one process."""

    def __init__(self, stream: SimStream, faults: Faults, process: Process) -> None:
        self._stream = stream
        self._faults = faults
        self._hub = faults.hub
        self._name = process.name
        self._effects = Effects(faults, process, "kinesis", _unanswered, pace=0.05)
        self._handlers: list[Callable[..., None]] = []
        self.meta = SimpleNamespace(events=SimpleNamespace(register=self._register))

    def list_shards(self, **request: Any) -> dict[str, Any]:
        return self._effects.call("list_shards", self._listing)

    def get_shard_iterator(self, **request: Any) -> dict[str, Any]:
        return self._effects.call("get_shard_iterator", lambda: self._iterator(**request))

    def get_records(self, **request: Any) -> dict[str, Any]:
        answer = self._effects.call("get_records", lambda: self._records(**request))
        response = {"status_code": 200, "body": json.dumps(answer).encode()}
        taken: dict[str, Any] = {}
        for handler in self._handlers:
            handler(response_dict=response, customized_response_dict=taken)
        return taken

    def _register(self, event: str, handler: Callable[..., None], unique_id: str) -> None:
        self._handlers = [handler]

    def _listing(self) -> dict[str, Any]:
        return {"Shards": [_listed(shard) for shard in self._stream.shards.values()], **self._response()}

    def _response(self) -> dict[str, Any]:
        date = formatdate(EPOCH + self._hub.now, usegmt=True)
        return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    def _iterator(
        self, *, ShardId: str, ShardIteratorType: str, StartingSequenceNumber: str = "", Timestamp: Any = None, **_: Any
    ) -> dict[str, Any]:
        records = self._stream.shards[ShardId].records
        match ShardIteratorType:
            case "TRIM_HORIZON":
                at = 0
            case "LATEST":
                at = len(records)
            case "AT_TIMESTAMP":
                at = sum(arrived < Timestamp.timestamp() for _, _, arrived in records)
            case kind:
                wanted = int(StartingSequenceNumber) + (kind == "AFTER_SEQUENCE_NUMBER")
                at = sum(sequence < wanted for sequence, _, _ in records)
        self._stream.is_read = True
        return {"ShardIterator": f"{ShardId} {at}", **self._response()}

    def _records(self, *, ShardIterator: str, Limit: int, **_: Any) -> dict[str, Any]:
        name, at = ShardIterator.split()
        if self._faults.away(f"shard {int(name[-12:])}"):
            raise _unanswered("get_records")
        shard, place = self._stream.shards[name], int(at)
        cut = self._faults.named(f"{self._name} cut {name}")
        most = min(Limit, 1 + int(12 * self._faults.chance("cut", cut) ** 2))
        found = shard.records[place : place + most]
        through = place + len(found)
        reply: dict[str, Any] = {
            "Records": [
                {"SequenceNumber": str(sequence), "Data": base64.b64encode(data).decode(), "PartitionKey": "k",
                 "ApproximateArrivalTimestamp": arrived}
                for sequence, data, arrived in found
            ],
            "MillisBehindLatest": 0,
        }  # fmt: skip
        if through < len(shard.records):
            reply["MillisBehindLatest"] = max(1, int((EPOCH + self._hub.now - shard.records[through][2]) * 1000))
        if shard.closed and through == len(shard.records):
            reply["ChildShards"] = [_child(self._stream.shards[child]) for child in shard.children]
        else:
            reply["NextShardIterator"] = f"{name} {through}"
        return reply


def _unanswered(name: str) -> Exception:
    return ReadTimeoutError(endpoint_url=f"kinesis.{name}")


def _range(shard: SimShard) -> dict[str, str]:
    return {"StartingHashKey": str(shard.start), "EndingHashKey": str(shard.end)}


def _listed(shard: SimShard) -> dict[str, Any]:
    sequences = {"StartingSequenceNumber": "0"} | ({"EndingSequenceNumber": "9"} if shard.closed else {})
    parents = dict(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
    return {"ShardId": shard.name, "HashKeyRange": _range(shard), "SequenceNumberRange": sequences, **parents}


def _child(shard: SimShard) -> dict[str, Any]:
    return {"ShardId": shard.name, "ParentShards": list(shard.parents), "HashKeyRange": _range(shard)}
