"""Asks the target of a replica now and then for its tables and its latest comparison, for metrics and ``/health``.

On a thread and a connection of its own, so that a target that does not answer delays no unit; what is known stays then.
Before each question tables are given up of which too much is held (:mod:`kainite.replicate.giving_up`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.verdict.facts import ReplicaFacts
from kainite_spark.driver.job_health import JobHealth

LOOK_S: Final = 30.0
"""Seconds between two questions."""


@contextmanager
def watching(
    ask: Callable[[], ReplicaFacts] | None, health: JobHealth, meter: Meter, give_up: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Asks while entered.

    Args:
        ask: asks the target; None for a target that is no replica.
        health: is told.
        meter: takes the metrics.
        give_up: gives up tables of which too much is held.
    """
    if ask is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(ask, give_up, health, meter, over), name="replica-watch", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()  # the thread may wait for the target, which holds up nobody


def _watch(
    ask: Callable[[], ReplicaFacts], give_up: Callable[[], None], health: JobHealth, meter: Meter, over: threading.Event
) -> None:
    while not over.is_set():
        give_up()
        found = ask()
        if not found.error:
            health.replica = found
            measure(found, meter)
        over.wait(LOOK_S)


def measure(found: ReplicaFacts, meter: Meter) -> None:
    """Sets the gauges of a replica."""
    meter.observe(metric.REPLICA_LOADING, len(found.loading))
    meter.observe(metric.REPLICA_FAILED, len(found.failed))
    meter.observe(metric.REPLICA_GIVEN_UP, len(found.given_up))
    meter.observe(metric.REPLICA_RANGES_LEFT, found.ranges_left)
    meter.observe(metric.VERIFY_NOT_PASSED, int(bool(found.verdict) and not found.passed))
    meter.observe(metric.VERIFY_DIFFERENT, found.different)
    meter.observe(metric.VERIFY_AGE, (found.age or 0.0) * 1000)
    meter.observe(metric.VERIFY_GOOD_AGE, (found.good_age or 0.0) * 1000)
    meter.observe(metric.VERIFY_LATE, int(found.is_late))
