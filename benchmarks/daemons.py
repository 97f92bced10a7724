"""Compares several daemons that share the shards on one machine with one daemon: throughput of the whole way, latency.

Each run is ``kainite demo`` in a process of its own: PostgreSQL to PostgreSQL, with all that it checks. Throughput is
measured at a rate that the machine does not keep up with, latency at a rate that it does; runs with one and with
several daemons take turns, and the table has medians. On one machine more daemons add no processors, so the
benchmark compares the cost of sharing the log.

    python benchmarks/daemons.py [--daemons N ...] [--rounds N] [--seconds S] [--rate R] [--full-rate R] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from runs.machine import warn_unless_quiet


@dataclass(frozen=True)
class Result:
    """The medians of the runs with so many daemons; latencies are in seconds, from commit to commit."""

    daemons: int
    units_per_second: float
    latency_p50: float
    latency_p99: float


def demo(daemons: int, seconds: int, rate: int, shards: int) -> dict[str, Any]:
    """Runs the demo once; returns its summary."""
    command = [sys.executable, "-m", "kainite", "demo", "--json", "--shards", str(shards)]
    command += ["--daemons", str(daemons), "--seconds", str(seconds), "--rate", str(rate)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the demo with {daemons} daemons ended with {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(options: argparse.Namespace) -> list[Result]:
    """Runs the demo in turns, with each number of daemons at both rates."""
    full: dict[int, list[dict[str, Any]]] = {daemons: [] for daemons in options.daemons}
    easy: dict[int, list[dict[str, Any]]] = {daemons: [] for daemons in options.daemons}
    for _ in range(options.rounds):
        for daemons in options.daemons:
            full[daemons].append(demo(daemons, options.seconds, options.full_rate, options.shards))
            easy[daemons].append(demo(daemons, options.seconds, options.rate, options.shards))
    return [
        Result(
            daemons,
            statistics.median(run["units_per_second"] for run in full[daemons]),
            statistics.median(run["latency_p50"] for run in easy[daemons]),
            statistics.median(run["latency_p99"] for run in easy[daemons]),
        )
        for daemons in options.daemons
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemons", type=int, nargs="*", default=[1, 4], help="numbers of daemons to compare")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20, help="how long each run's load lasts")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--rate", type=int, default=50, help="transactions a second, for the latency")
    parser.add_argument("--full-rate", type=int, default=1000, help="transactions a second, for the throughput")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    results = measure(options)
    if options.json:
        print(json.dumps([asdict(result) for result in results]))
        return
    for result in results:
        print(
            f"{result.daemons} daemons{result.units_per_second:>9,.0f} units/s, "
            f"latency p50 {result.latency_p50:.2f} s, p99 {result.latency_p99:.2f} s"
        )


if __name__ == "__main__":
    main()
