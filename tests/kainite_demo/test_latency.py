"""Latency is measured from commit to commit."""

from __future__ import annotations

import time

import pytest

from kainite_demo.latency import AppliedTimes, latencies, percentile
from kainite_demo.watching import Watching
from support.pgbench_databases import LIMIT, execute
from support.waiting import eventually


def test_latency_is_taken_from_commit_to_commit(target: str) -> None:
    times = AppliedTimes()
    before = time.time()
    with Watching(target, times.look) as watching:
        execute(target, "CREATE TABLE kainite_applied (uow text PRIMARY KEY)")
        for uow in ("a", "b"):
            execute(target, f"INSERT INTO kainite_applied VALUES ('{uow}')")
            eventually(lambda uow=uow: uow in times.at_us)  # type: ignore[misc]
            execute(target, "TRUNCATE kainite_applied")
        watching.check()
    found = latencies({"b": int(before * 1e6), "never": 0}, times.at_us)
    assert set(times.at_us) == {"a", "b"}
    assert len(found) == 1
    assert 0 <= found[0] < LIMIT


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (99, 10), (100, 10), (1, 1)])
def test_percentiles_are_values_that_occurred(percent: float, expected: float) -> None:
    assert percentile([float(n) for n in range(1, 11)], percent) == expected
    assert percentile([], percent) is None
