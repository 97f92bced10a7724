"""A Kinesis stream over real HTTP that does what moto cannot: end shards, expire iterators, throttle, break off.

Reading is as Kinesis documents it: a closed shard's last reply has no NextShardIterator and names
the children. Faults are queued by operation, and each answers one call.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config

from kainite.kinesis.client import StreamClient
from support.http_double import DoubleServer, JsonHandler

MAX_HASH_KEY = 2**128 - 1
FIRST_SEQUENCE = 49_640_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000


@dataclass
class ShardDouble:
    start: int
    end: int
    parents: tuple[str, ...] = ()
    open: bool = True
    records: list[dict[str, Any]] = field(default_factory=list)
    closed_at: float = 0.0


@dataclass
class Fault:
    """One answer instead of the real one; status 0 closes the connection without any."""

    status: int
    body: bytes


class KinesisDouble:
    def __init__(self, shards: int = 1, page: int = 100) -> None:
        step = (MAX_HASH_KEY + 1) // shards
        self.shards = {
            _name(n): ShardDouble(n * step, MAX_HASH_KEY if n == shards - 1 else (n + 1) * step - 1)
            for n in range(shards)
        }
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.children_in_replies = True
        self.created = 1_700_000_000.123
        self.clock: Callable[[], float] = time.time
        self._page = page
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._iterators: dict[str, tuple[str, int]] = {}
        self._sequence = FIRST_SEQUENCE
        self._lock = threading.Lock()
        self._server = DoubleServer(_handler(self))
        self.endpoint = self._server.endpoint

    def close(self) -> None:
        self._server.close()

    # What a test does to the stream.

    def put(self, data: bytes, key: str = "k", shard: str | None = None) -> int:
        """Puts a record; returns its sequence number."""
        hashed = int(hashlib.md5(key.encode()).hexdigest(), 16)
        with self._lock:
            target = self.shards[shard] if shard else next(s for s in self.shards.values() if _takes(s, hashed))
            self._sequence += 1
            target.records.append(
                {
                    "SequenceNumber": str(self._sequence),
                    "ApproximateArrivalTimestamp": self.clock(),
                    "Data": base64.b64encode(data).decode(),
                    "PartitionKey": key,
                }
            )
            return self._sequence

    def split(self, shard_id: str) -> tuple[str, str]:
        with self._lock:
            parent = self.shards[shard_id]
            parent.open, parent.closed_at = False, self.clock()
            middle = (parent.start + parent.end) // 2
            left, right = _name(len(self.shards)), _name(len(self.shards) + 1)
            self.shards[left] = ShardDouble(parent.start, middle, (shard_id,))
            self.shards[right] = ShardDouble(middle + 1, parent.end, (shard_id,))
            return left, right

    def merge(self, first: str, second: str) -> str:
        with self._lock:
            one, two = self.shards[first], self.shards[second]
            one.open = two.open = False
            one.closed_at = two.closed_at = self.clock()
            child = _name(len(self.shards))
            self.shards[child] = ShardDouble(one.start, two.end, (first, second))
            return child

    def expire_iterators(self) -> None:
        with self._lock:
            self._iterators.clear()

    def lose(self, shard: str) -> None:
        """Puts a record that nobody may read, and lets retention end for all records of the shard; iterators expire."""
        with self._lock:
            self._sequence += 1
            self.shards[shard].records.clear()
            self._iterators.clear()

    def fail(self, operation: str, code: str, times: int = 1, status: int = 400) -> None:
        body = json.dumps({"__type": code, "message": "as the test wants it"}).encode()
        self._faults[operation].extend([Fault(status, body)] * times)

    def hang_up(self, operation: str, times: int = 1) -> None:
        self._faults[operation].extend([Fault(0, b"")] * times)

    def answer(self, operation: str, body: bytes) -> None:
        self._faults[operation].append(Fault(200, body))

    def count(self, operation: str) -> int:
        return sum(1 for name, _ in self.requests if name == operation)

    def asked(self, operation: str) -> list[dict[str, Any]]:
        return [request for name, request in self.requests if name == operation]

    # What the stream answers.

    def handle(self, operation: str, request: dict[str, Any]) -> Fault:
        with self._lock:
            self.requests.append((operation, request))
            if self._faults[operation]:
                return self._faults[operation].popleft()
            answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
                "ListShards": self._list_shards,
                "GetShardIterator": self._get_shard_iterator,
                "GetRecords": self._get_records,
                "DescribeStreamSummary": self._describe,
            }
            try:
                return Fault(200, json.dumps(answers[operation](request)).encode())
            except _RefusedError as refused:
                return Fault(400, json.dumps({"__type": refused.code, "message": "refused"}).encode())

    def _describe(self, request: dict[str, Any]) -> dict[str, Any]:
        summary = {
            "StreamName": request["StreamName"],
            "StreamARN": f"arn:aws:kinesis:us-east-1:123456789012:stream/{request['StreamName']}",
            "StreamStatus": "ACTIVE",
            "StreamCreationTimestamp": self.created,
            "RetentionPeriodHours": 24,
            "EnhancedMonitoring": [],
            "OpenShardCount": sum(shard.open for shard in self.shards.values()),
        }
        return {"StreamDescriptionSummary": summary}

    def _list_shards(self, request: dict[str, Any]) -> dict[str, Any]:
        begin = int(request.get("NextToken", 0))
        names = sorted(self.shards)
        if (chosen := request.get("ShardFilter", {})).get("Type") == "FROM_TIMESTAMP":
            kept = self.shards.items()
            names = sorted(name for name, one in kept if one.open or one.closed_at >= chosen["Timestamp"])
        answer: dict[str, Any] = {"Shards": [self._listed(name) for name in names[begin : begin + self._page]]}
        if begin + self._page < len(names):
            answer["NextToken"] = str(begin + self._page)
        return answer

    def _listed(self, name: str) -> dict[str, Any]:
        shard = self.shards[name]
        item: dict[str, Any] = {
            "ShardId": name,
            "HashKeyRange": {"StartingHashKey": str(shard.start), "EndingHashKey": str(shard.end)},
            "SequenceNumberRange": {"StartingSequenceNumber": str(FIRST_SEQUENCE)},
        }
        item |= dict(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
        if not shard.open:
            item["SequenceNumberRange"]["EndingSequenceNumber"] = str(self._sequence)
        return item

    def _get_shard_iterator(self, request: dict[str, Any]) -> dict[str, Any]:
        shard = self.shards.get(request["ShardId"])
        if shard is None:
            raise _RefusedError("ResourceNotFoundException")
        sequences = [int(record["SequenceNumber"]) for record in shard.records]
        wanted = int(request.get("StartingSequenceNumber", 0))
        match request["ShardIteratorType"]:
            case "TRIM_HORIZON":
                index = 0
            case "LATEST":
                index = len(sequences)
            case "AT_SEQUENCE_NUMBER":
                index = sum(sequence < wanted for sequence in sequences)
            case "AFTER_SEQUENCE_NUMBER":
                index = sum(sequence <= wanted for sequence in sequences)
            case _:
                since = request["Timestamp"]
                index = sum(record["ApproximateArrivalTimestamp"] < since for record in shard.records)
        return {"ShardIterator": self._iterator(request["ShardId"], index)}

    def _get_records(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["ShardIterator"] not in self._iterators:
            raise _RefusedError("ExpiredIteratorException")
        name, index = self._iterators[request["ShardIterator"]]
        if name not in self.shards:
            raise _RefusedError("ResourceNotFoundException")
        shard = self.shards[name]
        records = shard.records[index : index + request["Limit"]]
        index += len(records)
        behind = 1000 * (len(shard.records) - index)
        answer: dict[str, Any] = {"Records": records, "MillisBehindLatest": behind}
        if shard.open or behind:
            answer["NextShardIterator"] = self._iterator(name, index)
        elif self.children_in_replies:
            answer["ChildShards"] = self._children(name)
        return answer

    def _children(self, name: str) -> list[dict[str, Any]]:
        children = ((child, shard) for child, shard in self.shards.items() if name in shard.parents)
        return [
            {
                "ShardId": child,
                "ParentShards": list(shard.parents),
                "HashKeyRange": {"StartingHashKey": str(shard.start), "EndingHashKey": str(shard.end)},
            }
            for child, shard in children
        ]

    def _iterator(self, name: str, index: int) -> str:
        iterator = f"iterator-{len(self.requests)}-{name}-{index}"
        self._iterators[iterator] = (name, index)
        return iterator


class _RefusedError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _name(number: int) -> str:
    return f"shardId-{number:012d}"


def _takes(shard: ShardDouble, hashed: int) -> bool:
    return shard.open and shard.start <= hashed <= shard.end


def _handler(double: KinesisDouble) -> type[JsonHandler]:
    class Handler(JsonHandler):
        def serve(self, operation: str, request: dict[str, Any]) -> None:
            answer = double.handle(operation, request)
            if answer.status == 0:
                self.close_connection = True
            else:
                self.answer(answer.status, answer.body)

    return Handler


@contextmanager
def stream_of(double: KinesisDouble, arn: str | None = None) -> Iterator[StreamClient]:
    """Returns a client that does not retry by itself."""
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    client = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1", config=config)
    yield StreamClient(client, "orders", arn)
    client.close()
