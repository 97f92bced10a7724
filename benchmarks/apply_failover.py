"""Measures how long applying stands still when an apply job is killed, and when all of Spark's workers are.

Real parts on this machine: PostgreSQL, moto's DynamoDB, ``kainite apply`` as processes. A unit comes to the log each
twentieth of a second. What is measured is the time until the target has a row that a job has committed afterwards.

=========  =========================================================  ==================================================
way        what is killed, again and again                            who goes on, and how it knows
=========  =========================================================  ==================================================
kill       the apply job that applies, with its JVM and its Python    a second one on its host, which stands by: it sees
           processes                                                  that the process is gone
away       the same, on another host (in namespaces of its own, as    a second one: the lease runs out
           util-linux's unshare makes them)
workers    both workers of a standalone cluster, with the executors   the same job, when two new workers run
           and their Python processes
=========  =========================================================  ==================================================

Of *kill* and *away* the time counts from the kill; ``fenced`` is when the target shuts out the killed job. Of *workers*
it counts from when the driver has the first new executor; ``executors`` is how long that took from the kill on.

    python benchmarks/apply_failover.py [--rounds N] [--lease SECONDS] [--ways WAY ...] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Final

from apply_failover_parts.cluster import has_executor, kill_workers, spark_cluster
from apply_failover_parts.jobs import LIMIT_S, await_true, kill, place
from runs.machine import warn_unless_quiet
from whole_way_parts.daemon import await_events

Round = dict[str, float]

STANDS_BY: Final = "waiting for another apply job to end"
STARTED: Final = "apply job started"
BETWEEN_S: Final = 3.0
"""The most seconds between two kills, apart from those that are waited for: longer than between two heartbeats."""


def jobs_killed(rounds: int, lease: float, *, elsewhere: bool) -> list[Round]:
    """Kills the job that applies, round by round; another one stands by each time."""
    found, chance = [], random.Random(3)
    with place(applyMaster="local[2]", applyLeaseMillis=str(round(lease * 1000))) as here:
        active = here.job(elsewhere=elsewhere)
        await_events(active, (STARTED,), LIMIT_S)
        for _ in range(rounds):
            standby = here.job(elsewhere=elsewhere)
            await_events(standby, (STANDS_BY,), LIMIT_S)
            time.sleep(chance.uniform(0.0, BETWEEN_S))
            here.await_commit(active)
            generation, began = here.reached().generation, time.perf_counter()
            kill(active)
            here.await_fence(standby, generation)
            fenced = time.perf_counter() - began
            here.await_commit(standby)
            found.append({"fenced": fenced, "commit": time.perf_counter() - began})
            active = standby
        here.check_whole()
    return found


def workers_killed(rounds: int) -> list[Round]:
    """Kills both workers of a cluster, and starts two new ones, round by round."""
    found = []
    settings = {"applyAwsFrom": "driver", "applyPython": sys.executable}
    with place(**settings) as here, spark_cluster(here.folder) as cluster:
        job = here.job(applyMaster=cluster.master)
        await_events(job, (STARTED,), LIMIT_S)
        for _ in range(rounds):
            here.await_commit(job)
            began = time.perf_counter()
            kill_workers(cluster)
            cluster.start_workers(2)
            await_true(partial(has_executor, here.folder, cluster.workers()), job)
            registered = time.perf_counter()
            here.await_commit(job)
            found.append({"executors": registered - began, "commit": time.perf_counter() - registered})
            time.sleep(BETWEEN_S)
        here.check_whole()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways: dict[str, Callable[[argparse.Namespace], Sequence[Round]]] = {
        "kill": lambda given: jobs_killed(given.rounds, given.lease, elsewhere=False),
        "away": lambda given: jobs_killed(given.rounds, given.lease, elsewhere=True),
        "workers": lambda given: workers_killed(given.rounds),
    }
    parser.add_argument("--rounds", type=int, default=5, help="how often a job, or the workers, are killed in each way")
    parser.add_argument("--lease", type=float, default=10.0, help="applyLeaseMillis, in seconds")
    parser.add_argument("--ways", nargs="*", choices=ways, default=list(ways))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    found = {}
    for way in options.ways:
        took = ways[way](options)
        found[way] = {
            name: {"median_s": round(median(values), 2), "most_s": round(max(values), 2)}
            for name in took[0]
            if (values := [each[name] for each in took])
        }
        if not options.json:
            for name, figures in found[way].items():
                print(f"{way:<9}{name:<11}{len(took):>3} times: median {figures['median_s']:6.2f} s, "
                      f"most {figures['most_s']:6.2f} s", flush=True)  # fmt: skip
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
