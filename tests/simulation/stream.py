"""A Kinesis stream: shards that split and merge, iterators, replies that are cut anywhere.

:class:`SimStream` is the stream itself. :class:`SimKinesis` is what one process has of it: boto3's client, as far as
:class:`kainite.kinesis.client.StreamClient` uses it.
"""

# ruff: noqa: N803 - the arguments are Kinesis's
from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.model import ServiceId

from simulation.faults import Effects, Faults, chance
from simulation.loop import EPOCH, Hub, Process
from support.kpl import User, aggregate

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
    closed_at: float = 0.0
    records: list[tuple[int, bytes, float]] = field(default_factory=list)


class SimStream:
    """The stream, which outlives every process."""

    def __init__(
        self, hub: Hub, shards: int, *, iterator_life: float = 300.0, skew: float = 0.0, number: int = 0
    ) -> None:
        self.number = number
        """Among several streams; equal shards of theirs meet faults of their own."""
        self._hub = hub
        self._skew = skew
        self.iterator_life = iterator_life
        self.shards: dict[str, SimShard] = {}
        self.is_read = False
        """Whether somebody has begun to read a shard."""
        self._sequence = 49_000_000_000
        width = (TOP + 1) // shards
        for number in range(shards):
            self._add(number * width, TOP if number == shards - 1 else (number + 1) * width - 1, ())

    @property
    def beyond(self) -> int:
        """Returns a sequence number behind all that there are, and before all that come."""
        return self._sequence + 1

    @property
    def open(self) -> list[SimShard]:
        return [shard for shard in self.shards.values() if not shard.closed]

    def put(self, hash_key: int, data: bytes) -> None:
        """Appends a record to the shard that holds the hash key."""
        self._append(self.shard_of(hash_key), data)

    def put_together(self, records: Sequence[tuple[int, bytes]]) -> None:
        """Appends records by their hash keys as the KPL does: those of one shard in one aggregate."""
        by_shard: dict[str, list[tuple[int, bytes]]] = {}
        for hash_key, data in records:
            by_shard.setdefault(self.shard_of(hash_key).name, []).append((hash_key, data))
        for name, some in by_shard.items():
            users = [User(data, explicit=place) for place, (_, data) in enumerate(some)]
            self._append(self.shards[name], aggregate(users, explicit=[str(hash_key) for hash_key, _ in some]))

    @property
    def filled(self) -> list[str]:
        """Returns the shards that have records."""
        return [shard.name for shard in self.shards.values() if shard.records]

    def trim(self, age: float) -> list[tuple[str, int, bytes]]:
        """Deletes the records that arrived longer ago; returns their shards, sequence numbers and data."""
        before, gone = EPOCH + self._hub.now - age, []
        for shard in self.shards.values():
            old = [record for record in shard.records if record[2] < before]
            gone += [(shard.name, sequence, data) for sequence, data, _ in old]
            shard.records = shard.records[len(old) :]
        return gone

    def shard_of(self, hash_key: int) -> SimShard:
        return next(shard for shard in self.open if shard.start <= hash_key <= shard.end)

    def _append(self, shard: SimShard, data: bytes) -> None:
        self._sequence += 7
        skew = self._skew * chance("clock", shard.name)
        shard.records.append((self._sequence, data, EPOCH + self._hub.now - skew))

    def split(self, shard: SimShard) -> None:
        middle = (shard.start + shard.end) // 2
        if shard.closed or shard.end - shard.start < 4:
            return
        self._close(shard)
        children = [self._add(shard.start, middle, (shard.name,)), self._add(middle + 1, shard.end, (shard.name,))]
        shard.children = tuple(child.name for child in children)

    def merge(self, one: SimShard, other: SimShard) -> None:
        """Merges two shards whose hash keys are neighbours."""
        if one.closed or other.closed or one.end + 1 != other.start:
            return
        self._close(one, other)
        child = self._add(one.start, other.end, (one.name, other.name))
        one.children = other.children = (child.name,)

    def _close(self, *shards: SimShard) -> None:
        for shard in shards:
            shard.closed, shard.closed_at = True, EPOCH + self._hub.now

    def _add(self, start: int, end: int, parents: tuple[str, ...]) -> SimShard:
        shard = SimShard(f"shardId-{len(self.shards):012}", start, end, parents)
        self.shards[shard.name] = shard
        return shard


class SimKinesis:
    """boto3's Kinesis client, in one process."""

    def __init__(self, streams: Mapping[str, SimStream], faults: Faults, process: Process) -> None:
        self._streams = streams
        self._faults = faults
        self._hub = faults.hub
        self._name = process.name
        self._effects = Effects(faults, process, "kinesis", unanswered, pace=0.05)
        self._handlers: list[Callable[..., None]] = []
        events = SimpleNamespace(register=self._register, register_last=lambda *_, **__: None)
        # Bodies come whole here, so what reads them in one piece (kainite.aws.whole_bodies) is taken and not called.
        self._endpoint = SimpleNamespace(http_session=SimpleNamespace(send=None))
        self.meta = SimpleNamespace(
            events=events, endpoint_url="http://127.0.0.1", region_name="us-east-1",
            service_model=SimpleNamespace(service_id=ServiceId("Kinesis")),
        )  # fmt: skip  # without TLS it is polled

    def list_shards(self, **request: Any) -> dict[str, Any]:
        return self._effects.call("list_shards", lambda: self._listing(**request))

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

    def _listing(self, *, StreamName: str, ShardFilter: Any = None, **_: Any) -> dict[str, Any]:
        shards = list(self._streams[StreamName].shards.values())
        if ShardFilter is not None and ShardFilter["Type"] == "FROM_TIMESTAMP":
            since = ShardFilter["Timestamp"].timestamp()
            shards = [shard for shard in shards if not shard.closed or shard.closed_at >= since]
        return {"Shards": [_listed(shard) for shard in shards], **self._response()}

    def _response(self) -> dict[str, Any]:
        date = formatdate(EPOCH + self._hub.now, usegmt=True)
        return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    def _iterator(
        self, *, StreamName: str, ShardId: str, ShardIteratorType: str, StartingSequenceNumber: str = "",
        Timestamp: Any = None, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        stream = self._streams[StreamName]
        records = stream.shards[ShardId].records
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
        stream.is_read = True
        # An iterator is the first sequence number that it may give, as positions move when records vanish.
        first = records[at][0] if at < len(records) else stream.beyond
        return {"ShardIterator": f"{StreamName} {ShardId} {first} {self._hub.now}", **self._response()}

    def _records(self, *, ShardIterator: str, Limit: int, **_: Any) -> dict[str, Any]:
        stream_name, name, first, made = ShardIterator.split()
        stream = self._streams[stream_name]
        apart = f" of stream {stream.number}" if stream.number else ""
        if self._faults.away(f"shard {int(name[-12:])}{apart}"):
            raise unanswered("get_records")
        if self._hub.now - float(made) > stream.iterator_life:
            error = {"Code": "ExpiredIteratorException", "Message": "the iterator has expired"}
            raise ClientError({"Error": error}, "GetRecords")  # type: ignore[typeddict-item]
        shard = stream.shards[name]
        place = sum(sequence < int(first) for sequence, _, _ in shard.records)
        cut = self._faults.named(f"{self._name} cut {name}{apart}")
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
        following = shard.records[through][0] if through < len(shard.records) else stream.beyond
        if shard.closed and through == len(shard.records):
            reply["ChildShards"] = [_child(stream.shards[child]) for child in shard.children]
        else:
            reply["NextShardIterator"] = f"{stream_name} {name} {following} {self._hub.now}"
        return reply


def unanswered(name: str) -> Exception:
    return ReadTimeoutError(endpoint_url=f"kinesis.{name}")


def _range(shard: SimShard) -> dict[str, str]:
    return {"StartingHashKey": str(shard.start), "EndingHashKey": str(shard.end)}


def _listed(shard: SimShard) -> dict[str, Any]:
    sequences = {"StartingSequenceNumber": "0"} | ({"EndingSequenceNumber": "9"} if shard.closed else {})
    parents = dict(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
    return {"ShardId": shard.name, "HashKeyRange": _range(shard), "SequenceNumberRange": sequences, **parents}


def _child(shard: SimShard) -> dict[str, Any]:
    return {"ShardId": shard.name, "ParentShards": list(shard.parents), "HashKeyRange": _range(shard)}
