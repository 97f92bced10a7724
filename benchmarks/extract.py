"""Measures `kainite extract`: messages a second, processor time a message, and what Kinesis charges, by settings.

The extraction is real: its loop, its extractor (this file, in a process of its own), the offset file, boto3 up to the
HTTP request. Kinesis answers at once, or after `--latency`, as a stream far away does; the extractor takes `--reading`
for an answer of 500 messages, as a database does. The messages are those of TPC-B from PostgreSQL: four changes of
about 300 bytes and an end a unit.

    python benchmarks/extract.py [--units N] [--latency MS] [--reading MS] [--shards N] [--json]

Prices are those of us-east-1 in November 2026: 0.014 dollars for a million PUT payload units of 25 KB, 0.08 for a
gigabyte of an on-demand stream, where each record counts as a multiple of 1 KB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import boto3
import orjson
from botocore.awsrequest import AWSResponse, HeadersDict
from runs.machine import warn_unless_quiet

from kainite.base.retry import Backoff
from kainite.extract.cycles.cyclic_extraction import CyclicExtraction
from kainite.extract.cycles.delivery import Delivery
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.extract.output.sink import Aggregation, Sink
from kainite.extract.patience import Patience
from kainite.extract.progress import ExtractionProgress, Showing
from kainite.extract.setbacks import Setbacks
from kainite.extract.status import ExtractStatus
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import HashRange, Shard
from kainite.kinesis.write.put import StreamWriter
from kainite.settings import ChildSettings, ExtractMode, ExtractOffsets, ExtractSettings, ExtractSpread

CHANGES = 4
UNITS_AN_ANSWER = 100
PRICED_BYTES = 25 * 1024
DOLLARS_A_MILLION_UNITS = 0.014
DOLLARS_A_GIGABYTE = 0.08


@dataclass
class Kinesis:
    """Answers PutRecords in boto3's place, and counts."""

    latency: float
    began: float = 0.0
    calls: int = 0
    records: int = 0
    units: int = 0
    on_demand_bytes: int = 0

    def answer(self, request: Any, **_: object) -> AWSResponse:
        entries = orjson.loads(request.body)["Records"]
        self.began = self.began or time.monotonic()
        self.calls += 1
        self.records += len(entries)
        for entry in entries:
            size = len(entry["Data"]) * 3 // 4 + len(entry["PartitionKey"])
            self.units += -(-size // PRICED_BYTES)
            self.on_demand_bytes += -(-size // 1024) * 1024
        time.sleep(self.latency)
        taken = {"SequenceNumber": "4" * 56, "ShardId": "shardId-000000000000"}
        body = orjson.dumps({"FailedRecordCount": 0, "Records": [taken] * len(entries)})
        headers = HeadersDict({"content-type": "application/x-amz-json-1.1"})
        return AWSResponse(request.url, 200, cast(Any, headers), cast(Any, _Raw(body)))


class _Raw:
    """The body of an answer, as urllib3 gives it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self._body


@dataclass(frozen=True)
class Lister:
    """Lists the shards."""

    shards: int

    def list_shards(self) -> tuple[Shard, ...]:
        width = 2**128 // self.shards
        return tuple(Shard(str(n), hash_range=HashRange(n * width, (n + 1) * width - 1)) for n in range(self.shards))


@dataclass(frozen=True)
class Result:
    """The figures of one run.

    Attributes:
        messages_per_second: messages over the time from the first put to the last stored place.
        micros_a_message: processor time of `kainite extract` a message, its extractor not included.
        put_units, dollars: PUT payload units a million deltas, and their price.
        dollars_on_demand: the price of a million deltas on an on-demand stream.
    """

    settings: str
    messages_per_second: int
    micros_a_message: float
    calls: int
    records: int
    put_units: int
    dollars: float
    dollars_on_demand: float


def messages(unit: int) -> Iterator[bytes]:
    """Yields a unit's messages, as `kainite-extract-postgresql` gives them."""
    name = {"uow": f"pg-{unit}-0/{unit * 1000:X}", "number": unit}
    for ordinal in range(CHANGES):
        yield orjson.dumps(
            {
                **name, "ordinal": ordinal, "count": CHANGES, "relation": "public.pgbench_accounts",
                "operation": "update", "types": {"aid": 23, "bid": 23, "abalance": 23, "filler": 1042},
                "key": {"aid": str(unit)},
                "new": {"aid": str(unit), "bid": "1", "abalance": "-17", "filler": " " * 84},
            }
        )  # fmt: skip
    yield orjson.dumps({**name, "end": True, "count": CHANGES})


def extractor(units: int, reading: float) -> None:
    """Answers requests until the input ends."""
    for line in sys.stdin.buffer:
        start = orjson.loads(line)["start"]
        end = min(start + UNITS_AN_ANSWER, units)
        time.sleep(reading if end > start else 0.05)
        for unit in range(start, end):
            sys.stdout.buffer.writelines(message + b"\n" for message in messages(unit))
        if end > start:
            sys.stdout.buffer.write(orjson.dumps({"offset": end, "ahead": True}) + b"\n")
        sys.stdout.buffer.write(b"\0")
        sys.stdout.buffer.flush()


async def measure(options: argparse.Namespace, *, ahead: bool, aggregation: bool) -> Result:
    """Extracts all units."""
    with tempfile.TemporaryDirectory() as folder:
        kinesis = Kinesis(options.latency / 1000)
        client = boto3.client("kinesis", "us-east-1", aws_access_key_id="k", aws_secret_access_key="s")
        client.meta.events.register("before-send.kinesis.PutRecords", cast(Any, kinesis.answer))
        command = (sys.executable, __file__, "--extract", str(options.units), "--reading", str(options.reading))
        extract = ExtractSettings(command, ExtractMode.CYCLIC, ExtractOffsets.KAINITE, interval=0.01)
        file = OffsetFile(Path(folder, "offset"), "s", ExtractOffsets.KAINITE)
        file.create(Place(0))
        how = Aggregation(extract.aggregation_bytes, extract.aggregation_time) if aggregation else None
        sink = Sink(
            cast(StreamClient, Lister(options.shards)), StreamWriter(client, "s"), ExtractSpread.UNIT, 60.0,
            Patience(1, 1, 1), how,
        )  # fmt: skip
        progress, stop = ExtractionProgress(Showing(line=False, events=False), sink.totals), asyncio.Event()
        delivery = Delivery(sink, file, progress, extract.ahead_bytes)
        status = ExtractStatus(sink.totals)
        extraction = CyclicExtraction(
            ExtractSettings(command, extract.mode, extract.offsets, interval=0.01, ahead_bytes=2**23 * ahead),
            ChildSettings(()), delivery, status, Setbacks(Patience(1, 1, 1), Backoff((1.0,)), status, progress),
            stop,
        )  # fmt: skip
        cpu = time.process_time()
        running = asyncio.create_task(extraction.run(once=False))
        while file.load().start < options.units and not running.done():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.02)
        seconds, cpu = time.monotonic() - kinesis.began, time.process_time() - cpu
        stop.set()
        await running
        return _result(options.units, seconds, cpu, kinesis, ahead=ahead, aggregation=aggregation)


def _result(units: int, seconds: float, cpu: float, kinesis: Kinesis, *, ahead: bool, aggregation: bool) -> Result:
    count, million = units * (CHANGES + 1), 1_000_000 / (units * CHANGES)
    return Result(
        settings=f"{'ahead' if ahead else 'one answer at a time'}{', aggregation' if aggregation else ''}",
        messages_per_second=round(count / seconds),
        micros_a_message=round(cpu / count * 1e6, 1),
        calls=kinesis.calls,
        records=kinesis.records,
        put_units=round(kinesis.units * million),
        dollars=round(kinesis.units * million / 1e6 * DOLLARS_A_MILLION_UNITS, 5),
        dollars_on_demand=round(kinesis.on_demand_bytes * million / 1e9 * DOLLARS_A_GIGABYTE, 4),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=20.0, help="milliseconds that PutRecords takes")
    parser.add_argument("--reading", type=float, default=20.0, help="milliseconds until an answer's first message")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--extract", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warn_unless_quiet()
    if options.extract is not None:
        extractor(options.extract, options.reading / 1000)
        return
    ways = [(False, False), (True, False), (True, True)]
    results = [asyncio.run(measure(options, ahead=ahead, aggregation=packed)) for ahead, packed in ways]
    if options.json:
        print(json.dumps([asdict(result) for result in results]))
        return
    names = list(asdict(results[0]))
    rows = [names, *([str(value) for value in asdict(result).values()] for result in results)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(names))]
    for row in rows:
        print("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
