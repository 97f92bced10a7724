"""Measures how a shard is read: by polling, and by fan-out over HTTP/1.1 and over HTTP/2.

A process of its own plays Kinesis, with TLS for all three ways. *Backlog*: a reader takes a full shard as fast as it
can; the figures are records and MB a second, and the processor time of this process for a record. The server is written
in Python and slow over HTTP/2, so processor time tells more than throughput; Kinesis gives 2 MB a second. *Latency*:
records arrive one by one; milliseconds from arrival to the batch, for polling with the time between two reads that is
named (``idleTimeBetweenReadsInMillis``).

    python benchmarks/fan_out.py [--records N] [--bytes N] [--arrivals N] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import boto3
from botocore.config import Config
from runs.machine import warn_unless_quiet

from kainite.base.checkpoint import TRIM_HORIZON
from kainite.base.time_limit import time_limit
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.fan_out import fan_out
from kainite.kinesis.read.http2_transport import use_http2
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.kinesis.read.shard_source import ShardSource, polling
from kainite.kinesis.read.subscription import Subscriber
from kainite.settings import StreamSettings

SHARD = "shardId-000000000000"
LIMIT_S = 100.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """How fast a full shard is read, and what it costs this process."""

    way: str
    records_per_second: float
    mb_per_second: float
    cpu_us_per_record: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a record's arrival to its batch."""

    way: str
    median_ms: float
    p90_ms: float


def source(endpoint: str, way: str, idle: float) -> ShardSource:
    config = Config(retries={"total_max_attempts": 1}, read_timeout=LIMIT_S)
    client: Any = boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1", config=config)
    if way == "HTTP/2":
        use_http2(client)
    stream = StreamClient(client, "orders")
    polled = polling(stream, render=render_process_records)
    pushed = fan_out(stream, Subscriber(client, "arn:consumer"), polled, render=render_process_records)
    settings = StreamSettings(name="orders", idle_between_reads=idle)
    return (polled if way == "polling" else pushed)(SHARD, None, TRIM_HORIZON, settings, cut_at=None)


async def read_backlog(endpoint: str, way: str, records: int, size: int) -> Backlog:
    reader = source(endpoint, way, 0.0)
    began, used, count = time.perf_counter(), time.process_time(), 0
    async with time_limit(LIMIT_S):
        while count < records:
            batch = await reader.ahead.next()
            assert isinstance(batch, RecordBatch)
            count += batch.count
    took, cpu = time.perf_counter() - began, time.process_time() - used
    await reader.close()
    return Backlog(way, count / took, count * size / took / 1e6, cpu / count * 1e6)


async def read_arrivals(endpoint: str, way: str, arrivals: int, idle: float, begin: Callable[[], None]) -> Latency:
    reader = source(endpoint, way, idle)
    begin()
    late: list[float] = []
    async with time_limit(LIMIT_S):
        while len(late) < arrivals:
            batch = await reader.ahead.next()
            assert isinstance(batch, RecordBatch)
            now = time.time() * 1000
            late += [now - record["approximateArrivalTimestamp"] for record in json.loads(batch.line)["records"]]
    await reader.close()
    name = f"polling, {idle * 1000:.0f} ms" if way == "polling" else way
    return Latency(name, median(late), quantiles(late, n=10)[-1])


async def measure(server: Server, records: int, size: int, arrivals: int) -> tuple[list[Backlog], list[Latency]]:
    backlogs = [await read_backlog(server.full, way, records, size) for way in ("polling", "HTTP/1.1", "HTTP/2")]
    pushed = [await read_arrivals(server.paced, way, arrivals, 0, lambda: None) for way in ("HTTP/1.1", "HTTP/2")]
    polled = await read_arrivals(server.paced, "polling", arrivals, 0.2, server.begin_arrivals)
    return backlogs, [polled, *pushed]


@dataclass(frozen=True, slots=True)
class Server:
    """The process that plays Kinesis: its endpoints, and what makes records arrive that are polled."""

    full: str
    paced: str
    begin_arrivals: Callable[[], None]


@contextmanager
def serving(records: int, size: int, arrivals: int) -> Iterator[Server]:
    program = Path(__file__).parent / "fan_out_parts" / "kinesis.py"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AWS_CA_BUNDLE"] = str(Path(folder) / "authority.pem")
        command = [sys.executable, str(program), folder, str(records), str(size), str(arrivals)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            line = server.stdin
            full, paced = json.loads(server.stdout.readline())
            yield Server(full, paced, begin_arrivals=lambda: print(file=line, flush=True))
            line.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=40_000, help="records of the full shard")
    parser.add_argument("--bytes", type=int, default=1_000, help="bytes of a record")
    parser.add_argument("--arrivals", type=int, default=100, help="records that arrive one by one")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warn_unless_quiet()
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "benchmark")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "benchmark")
    size = given.records, given.bytes, given.arrivals
    with serving(*size) as server:
        backlogs, latencies = asyncio.run(measure(server, *size))
    if given.json:
        found = {"backlog": [asdict(one) for one in backlogs], "latency": [asdict(one) for one in latencies]}
        print(json.dumps(found, indent=2))
        return
    print(f"{given.records:,} records of {given.bytes:,} bytes\n\nway         records/s   MB/s   CPU µs/record")
    for one in backlogs:
        print(
            f"{one.way:<10} {one.records_per_second:>10,.0f} {one.mb_per_second:>6.1f} {one.cpu_us_per_record:>12.1f}"
        )
    print("\nlatency            median ms   p90 ms")
    for each in latencies:
        print(f"{each.way:<18} {each.median_ms:>9.1f} {each.p90_ms:>8.1f}")


if __name__ == "__main__":
    main()
