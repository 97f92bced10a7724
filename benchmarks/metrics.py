"""Measures an observation to nobody, to Prometheus, to CloudWatch and to both, and a scrape of many shards.

The daemon observes once a batch or a call, never once a record: microseconds beside a GetRecords call of
milliseconds. A scrape is rendered in a thread, off the loop that reads records.

    python benchmarks/metrics.py [--observations N] [--shards N] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from runs.machine import warn_unless_quiet

from kainite.observe.cloudwatch import CloudWatch
from kainite.observe.health import HealthLimits, judge_shard
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import MILLIS_BEHIND_LATEST, PROCESS_RECORDS_TIME, RECORDS_PROCESSED
from kainite.observe.prometheus import Prometheus
from kainite.observe.shard_status import ShardStatus
from kainite.settings import MetricsLevel, MetricsSettings

AIM_NS = 10_000
"""Upper limit of one observation to both: a hundredth of the cheapest batch."""

OBSERVED = (RECORDS_PROCESSED, MILLIS_BEHIND_LATEST, PROCESS_RECORDS_TIME)
LIMITS = HealthLimits(hung_after=300, poison_tries=5, unreached_after=60)


def observe_ns(meter: Meter, observations: int, shards: list[str]) -> float:
    """Returns nanoseconds an observation; the best of three runs."""
    return min(_run(meter, observations, shards) for _ in range(3))


def _run(meter: Meter, observations: int, shards: list[str]) -> float:
    begun = time.perf_counter_ns()
    for number in range(observations):
        meter.observe(OBSERVED[number % 3], 7, shards[number % len(shards)])
    return (time.perf_counter_ns() - begun) / observations


def scrape_ms(prometheus: Prometheus, shards: list[str]) -> tuple[float, int]:
    """Returns milliseconds and bytes of one scrape."""
    judged = [judge_shard(ShardStatus(shard, "PROCESSING", pid=1), LIMITS) for shard in shards]
    begun = time.perf_counter_ns()
    page = prometheus.render(judged)
    return (time.perf_counter_ns() - begun) / 1e6, len(page)


def measure(observations: int, count: int) -> dict[str, float]:
    shards = [f"shardId-{number:012d}" for number in range(count)]
    nobody: Any = None
    prometheus = Prometheus()
    cloudwatch = CloudWatch(lambda: nobody, "app", "w", MetricsLevel.DETAILED, MetricsSettings())
    meters = {"nobody": SILENT, "prometheus": Meter(prometheus), "cloudwatch": Meter(cloudwatch)}
    found = {name: observe_ns(meter, observations, shards) for name, meter in meters.items()}
    found["both"] = observe_ns(Meter(prometheus, cloudwatch), observations, shards)
    found["scrape_ms"], found["scrape_bytes"] = scrape_ms(prometheus, shards)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, default=200_000)
    parser.add_argument("--shards", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    warn_unless_quiet()
    found = measure(arguments.observations, arguments.shards)
    if arguments.json:
        print(json.dumps(found))
        return 0
    for name in ("nobody", "prometheus", "cloudwatch", "both"):
        print(f"observation to {name:<11} {found[name]:8.0f} ns")
    print(f"scrape of {arguments.shards} shards {found['scrape_ms']:10.1f} ms, {found['scrape_bytes'] / 1024:.0f} KiB")
    print(f"aim: at most {AIM_NS} ns to both: {'met' if found['both'] <= AIM_NS else 'MISSED'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
