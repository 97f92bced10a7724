"""Measures records per second through the daemon to its children and back, and the daemon's processor time and memory.

``kainite run`` runs as in production: its own process, its settings file, HTTP and signing, the lease
table (moto's server), one child a shard. Another process serves GetRecords replies that were rendered
beforehand; the children only count and answer. Processor time is the daemon's own user and system time from
its start to the last record, without the server's and the children's. Memory is the kernel's peak (VmHWM).

Two baselines:

* the Java MultiLangDaemon (KCL 2.5.8) on the same work (8 shards, 1.6 million records of 200 B, 10,000 a
  reply, 2 cores), measured once and stated here;
* plain boto3 in the same run: ``get_records``, then ``json.dumps`` of the same line to one child, in one process.

Run it: ``python benchmarks/child_pipe.py [--shards 1 8] [--records N] [--json]``. The files take about 450 B a
record of one shard: 0.7 GB for one shard with 1.6 million records. With one shard the rate is bound by
``idleTimeBetweenReadsInMillis`` (50 ms a reply of 10,000, so 200,000 records/s at most).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runs.machine import warn_unless_quiet

from kainite_demo.services import moto

HERE = Path(__file__).parent
RECORDS_A_REPLY, RECORD_BYTES, PATIENCE_S = 10_000, 200, 600
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@dataclass(frozen=True, slots=True)
class Result:
    """One run's figures; times in seconds, memory in MB, processor time for a million records."""

    name: str
    shards: int
    records: int
    records_per_second: float
    cpu_per_million: float
    peak_mb: float
    first_record_s: float


JAVA = Result("Java MultiLangDaemon (stated)", 8, 1_600_000, 90_000, 24.0, 2_600, 92.0)


def measure_daemon(endpoint: str, dynamodb: str, shards: int, records: int, folder: Path) -> Result:
    """Runs the daemon until each child has had its share of ``records``."""
    share = records // shards
    settings = write_settings(endpoint, dynamodb, f"bench-{shards}", share, folder)
    began = time.monotonic()
    daemon = subprocess.Popen(
        [sys.executable, "-m", "kainite", "run", "-p", str(settings)],
        env={**os.environ, **CREDENTIALS},
        stderr=(folder / "stderr").open("w"),
    )
    try:
        notes = await_children(daemon, folder, shards)
        cpu, peak = cpu_and_peak(daemon.pid)
    finally:
        daemon.send_signal(signal.SIGTERM)
        status = daemon.wait(timeout=30)
    if status != 0 or any(note["records"] != share for note in notes):
        raise SystemExit(f"the daemon lost records or failed ({status}): {notes}\n{(folder / 'stderr').read_text()}")
    first, last = min(note["first"] for note in notes), max(note["last"] for note in notes)
    rate = records / (last - first)
    return Result("kainite run", shards, records, rate, cpu / records * 1e6, peak, first - began)


def write_settings(endpoint: str, dynamodb: str, application: str, share: int, folder: Path) -> Path:
    path = folder / "app.properties"
    path.write_text(
        f"executableName = {sys.executable} -S -E {HERE / 'child_pipe_parts' / 'child.py'} {share} {folder}\n"
        f"applicationName = {application}\nstreamName = {application}\nregionName = us-east-1\n"
        f"kinesisEndpoint = {endpoint}\ndynamoDBEndpoint = {dynamodb}\n"
        f"initialPositionInStream = TRIM_HORIZON\nmaxRecords = {RECORDS_A_REPLY}\nidleTimeBetweenReadsInMillis = 50\n"
    )
    return path


def await_children(daemon: subprocess.Popen[bytes], folder: Path, shards: int) -> list[dict[str, Any]]:
    """Waits for the notes that each child writes at its last record, and returns them."""
    end = time.monotonic() + PATIENCE_S
    while len(notes := sorted(folder.glob("shardId-*.json"))) < shards:
        if daemon.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the daemon did not finish:\n{(folder / 'stderr').read_text()}")
        time.sleep(0.02)
    return [json.loads(note.read_text()) for note in notes]


def cpu_and_peak(pid: int) -> tuple[float, float]:
    """Returns a process's own user and system seconds, and its peak resident MB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    status = Path(f"/proc/{pid}/status").read_text()
    return cpu, int(status.partition("VmHWM:")[2].split()[0]) / 1024


BOTO3_LOOP = """
import base64, json, os, subprocess, sys, time
import boto3
endpoint, records, script, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
began = time.monotonic()
kinesis = boto3.client("kinesis", endpoint_url=endpoint)
child = subprocess.Popen([sys.executable, "-S", "-E", script, str(records), folder], stdin=-1, stdout=-1,
                         env={**os.environ, "KCL_SHARD_ID": "shardId-boto3"})
iterator = kinesis.get_shard_iterator(StreamName="s", ShardId="shardId-000000000000",
                                      ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
done = 0
while done < records:
    reply = kinesis.get_records(ShardIterator=iterator, Limit=10000)
    iterator = reply["NextShardIterator"]
    line = json.dumps({"action": "processRecords", "records": [
        {"data": base64.b64encode(r["Data"]).decode(), "partitionKey": r["PartitionKey"],
         "sequenceNumber": r["SequenceNumber"],
         "approximateArrivalTimestamp": int(r["ApproximateArrivalTimestamp"].timestamp() * 1000),
         "subSequenceNumber": 0, "action": "record"} for r in reply["Records"]],
        "millisBehindLatest": reply["MillisBehindLatest"]}, separators=(",", ":"))
    child.stdin.write(line.encode() + b"\\n")
    child.stdin.flush()
    child.stdout.readline()
    done += len(reply["Records"])
cpu = os.times()
print(json.dumps({"cpu": cpu.user + cpu.system, "began": began,
                  "peak": int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024}))
"""


def measure_boto3(endpoint: str, records: int, folder: Path) -> Result:
    """Measures the same work with boto3 and json only: one shard, no lease, no guarantees."""
    script = str(HERE / "child_pipe_parts" / "child.py")
    done = subprocess.run(
        [sys.executable, "-c", BOTO3_LOOP, endpoint, str(records), script, str(folder)],
        env={**os.environ, **CREDENTIALS}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    own = json.loads(done.stdout)
    note = json.loads((folder / "shardId-boto3.json").read_text())
    rate = records / (note["last"] - note["first"])
    return Result(
        "boto3 and json.dumps", 1, records, rate, own["cpu"] / records * 1e6, own["peak"], note["first"] - own["began"]
    )


@contextmanager
def served(shards: int, records: int, folder: Path) -> Iterator[str]:
    """Yields the address of a stream of ``records`` records, shared out to ``shards`` shards."""
    sizes = (shards, records // shards // RECORDS_A_REPLY, RECORDS_A_REPLY, RECORD_BYTES)
    command = [sys.executable, str(HERE / "child_pipe_parts" / "server.py"), str(folder), *map(str, sizes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def run(shard_counts: Sequence[int], records: int) -> list[Result]:
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="kainite-bench-") as name, ExitStack() as stack:
        root = Path(name)
        replies = root / "replies"
        replies.mkdir()
        dynamodb = stack.enter_context(moto(root / "moto.log"))()
        for shards in shard_counts:
            folder = root / str(shards)
            folder.mkdir()
            print(f"kainite run, {shards} shards …", file=sys.stderr)
            with served(shards, records, replies) as endpoint:
                results.append(measure_daemon(endpoint, dynamodb, shards, records, folder))
        print("boto3 …", file=sys.stderr)
        with served(1, records, replies) as endpoint:
            results.append(measure_boto3(endpoint, min(records, 20 * RECORDS_A_REPLY), root))
    return results


WIDTHS = {"records_per_second": 12, "cpu_per_million": 15, "peak_mb": 9, "first_record_s": 16}


def table(results: Sequence[Result]) -> str:
    """Returns the results as a table; under each run of the daemon, its ratio to either baseline."""
    *_, boto3 = results
    lines = [f"{'':32}{'shards':>7}{'records/s':>12}{'CPU s/million':>15}{'peak MB':>9}{'first record s':>16}"]
    for result in [*results, JAVA]:
        lines.append(
            f"{result.name:32}{result.shards:>7}{result.records_per_second:>12,.0f}{result.cpu_per_million:>15.2f}"
            f"{result.peak_mb:>9.0f}{result.first_record_s:>16.2f}"
        )
        if result not in (boto3, JAVA):
            lines += [ratio_line("than Java", result, JAVA), ratio_line("than boto3", result, boto3)]
    return "\n".join(lines)


def ratio_line(than: str, result: Result, baseline: Result) -> str:
    better = ratios(result, baseline)
    return f"{'  times better ' + than:39}" + "".join(f"{better[key]:>{WIDTHS[key] - 1}.1f}×" for key in WIDTHS)


def ratios(result: Result, baseline: Result) -> dict[str, float]:
    """Returns how many times better a result is than the baseline."""
    return {
        "records_per_second": result.records_per_second / baseline.records_per_second,
        "cpu_per_million": baseline.cpu_per_million / result.cpu_per_million,
        "peak_mb": baseline.peak_mb / result.peak_mb,
        "first_record_s": baseline.first_record_s / result.first_record_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--records", type=int, default=1_600_000, help="in all; a multiple of 10,000 × shards")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if any(options.records % (shards * RECORDS_A_REPLY) for shards in options.shards):
        parser.error("--records must be a multiple of 10,000 × shards")
    warn_unless_quiet()
    results = run(options.shards, options.records)
    if options.json:
        *runs, boto3 = results
        ours = [
            {**asdict(run), "times_better_than_java": ratios(run, JAVA), "than_boto3": ratios(run, boto3)}
            for run in runs
        ]
        print(json.dumps({"runs": ours, "boto3": asdict(boto3), "java": asdict(JAVA)}, indent=2))
    else:
        print(table(results))


if __name__ == "__main__":
    main()
