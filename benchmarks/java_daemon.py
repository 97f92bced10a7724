"""Measures the real Java MultiLangDaemon and ``kainite run`` on the same work, one after the other in one run.

Both get an application of their own with the same settings, the same child program and as many records. Java is
KCL 3.1.3 as ``tools/peers`` installs it, with the settings that make it a 2.x worker. Each daemon starts on a stream
that holds all records already, and with a filled lease table (Java would wait for up to 30 s before it fills an empty
one). The children count and answer.

KCL speaks HTTP/2, so Kinesis is kinesis-local. It is slow and limits the records per second of both daemons;
``benchmarks/child_pipe.py`` measures a daemon's throughput. This benchmark measures a daemon's cost for the host:
seconds from the start to the first record, the daemon's own processor time up to the last record, and its peak
memory (VmHWM).

Run it after ``make peers``: ``python benchmarks/java_daemon.py [--records N] [--json]``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import boto3
from child_pipe import CREDENTIALS, HERE, PATIENCE_S, cpu_and_peak
from runs.machine import warn_unless_quiet

from kainite_demo.services import moto

sys.path.insert(0, str(HERE.parent / "tests"))  # the peers are started as the tests start them

from support.java_kcl import AS_2X, Application, kill
from support.kinesis_local import client_of, kinesis_local

SHARDS, RECORD_BYTES, PUT = 4, 200, 500
Start = Callable[[str], AbstractContextManager[subprocess.Popen[bytes]]]


@dataclass(frozen=True, slots=True)
class Result:
    """One daemon's figures; processor time and memory are the daemon's own, without its children's."""

    name: str
    records: int
    first_record_s: float
    last_record_s: float
    cpu_s: float
    peak_mb: float


def fill(kinesis: Any, stream: str, records: int) -> None:
    """Puts ``records`` records, the same number on each shard."""
    keys = [str((2 * shard + 1) * 2**128 // (2 * SHARDS)) for shard in range(SHARDS)]
    entries = [
        {"Data": b"x" * RECORD_BYTES, "PartitionKey": "k", "ExplicitHashKey": keys[i % SHARDS]} for i in range(PUT)
    ]
    for _ in range(records // PUT):
        if kinesis.put_records(StreamName=stream, Records=entries)["FailedRecordCount"]:
            raise SystemExit("kinesis-local refused records")


def measure(name: str, app: Application, start: Start, records: int) -> Result:
    """Starts a daemon, waits until its children have had every record, and returns its figures."""
    began = time.monotonic()
    with start(name) as daemon:
        notes = await_notes(name, app, daemon)
        cpu, peak = cpu_and_peak(daemon.pid)
        kill(daemon)
    first, last = min(note["first"] for note in notes), max(note["last"] for note in notes)
    return Result(name, records, first - began, last - began, cpu, peak)


def await_notes(name: str, app: Application, daemon: subprocess.Popen[bytes]) -> list[dict[str, float]]:
    """Waits for the notes that each child writes at its last record, and returns them."""
    end = time.monotonic() + PATIENCE_S
    while len(notes := sorted(app.folder.glob("shardId-*.json"))) < SHARDS:
        if daemon.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{name} did not finish:\n{app.log(name)[-3000:]}")
        time.sleep(0.02)
    return [json.loads(note.read_text()) for note in notes]


def run(records: int) -> list[Result]:
    results = []
    with (
        tempfile.TemporaryDirectory(prefix="kainite-bench-") as root,
        kinesis_local() as endpoint,
        moto(Path(root) / "moto.log") as services,
    ):
        address = services()
        dynamodb = boto3.client("dynamodb", endpoint_url=address)
        for name in ("java", "kainite"):
            print(f"{name} …", file=sys.stderr)
            folder = Path(root) / name
            folder.mkdir()
            child = f"{sys.executable} -S -E {HERE / 'child_pipe_parts' / 'child.py'} {records // SHARDS} {folder}"
            keys = {**AS_2X, "executableName": child, "maxRecords": "10000"}
            client = client_of(endpoint)
            app = Application(client, dynamodb, endpoint, address, folder, SHARDS, keys)
            fill(client, app.name, records)
            results.append(measure(name, app, app.java if name == "java" else app.kainite, records))
    return results


def table(results: list[Result]) -> str:
    java, kainite = results
    lines = [f"{'':22}{'first record s':>16}{'last record s':>15}{'CPU s':>8}{'peak MB':>9}"]
    for each in results:
        lines.append(
            f"{each.name:22}{each.first_record_s:>16.1f}{each.last_record_s:>15.1f}{each.cpu_s:>8.1f}{each.peak_mb:>9.0f}"
        )
    better = {key: getattr(java, key) / getattr(kainite, key) for key in WIDTHS}
    lines.append(
        f"{'Kainite needs less by':22}" + "".join(f"{better[key]:>{width - 1}.1f}×" for key, width in WIDTHS.items())
    )
    return "\n".join(lines)


WIDTHS = {"first_record_s": 16, "last_record_s": 15, "cpu_s": 8, "peak_mb": 9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000, help=f"in all; a multiple of {PUT * SHARDS}")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.records % (PUT * SHARDS):
        parser.error(f"--records must be a multiple of {PUT * SHARDS}")
    warn_unless_quiet()
    os.environ.update(CREDENTIALS)
    results = run(options.records)
    print(json.dumps([asdict(each) for each in results], indent=2) if options.json else table(results))


if __name__ == "__main__":
    main()
