"""Sums of observations, and which of them are published under which dimensions."""

from __future__ import annotations

import math
import statistics as reference

from hypothesis import given
from hypothesis import strategies as st

from kainite.observe.metric import CURRENT_LEASES, GET_RECORDS_TIME, INITIALIZE_TIME, METRICS, RECORDS_PROCESSED, Metric
from kainite.observe.statistics import Statistics, dimensions, is_published
from kainite.settings import MetricsLevel

values = st.floats(min_value=-1e9, max_value=1e9)
lists = st.lists(values, min_size=1)


def summed(observed: list[float]) -> Statistics:
    sums = Statistics.of(observed[0])
    for value in observed[1:]:
        sums.add(value)
    return sums


@given(lists)
def test_a_sum_says_what_was_observed(observed: list[float]) -> None:
    sums = summed(observed)

    assert (sums.count, sums.least, sums.most) == (len(observed), min(observed), max(observed))
    assert math.isclose(sums.total / sums.count, reference.fmean(observed), rel_tol=1e-9, abs_tol=1e-3)


@given(lists, lists)
def test_merged_sums_are_those_of_all_observations(one: list[float], other: list[float]) -> None:
    merged, every = summed(one), summed(one + other)

    merged.merge(summed(other))

    assert (merged.count, merged.least, merged.most) == (every.count, every.least, every.most)
    assert math.isclose(merged.total, every.total, rel_tol=1e-9, abs_tol=1e-3)


@given(st.sampled_from(METRICS))
def test_each_level_publishes_what_the_one_above_does_and_more(metric: Metric) -> None:
    assert not is_published(metric, MetricsLevel.NONE)
    assert is_published(metric, MetricsLevel.DETAILED)
    assert is_published(metric, MetricsLevel.SUMMARY) == (metric.level is MetricsLevel.SUMMARY)


@given(
    st.sampled_from(METRICS),
    st.none() | st.just("s-1"),
    st.frozensets(st.sampled_from(["Operation", "ShardId", "WorkerIdentifier", "ALL"])),
)
def test_the_operation_is_always_a_dimension_and_others_when_they_are_enabled(
    metric: Metric, shard: str | None, enabled: frozenset[str]
) -> None:
    found = dict(dimensions(metric, shard, "w", enabled))

    assert found.pop("Operation") == metric.operation
    assert found.keys() <= ({"ShardId", "WorkerIdentifier"} if "ALL" in enabled else enabled)


def test_dimensions_are_those_of_kcl() -> None:
    every = ["ALL"]

    assert dimensions(RECORDS_PROCESSED, "s", "w", every) == (("Operation", "ProcessTask"), ("ShardId", "s"))
    assert dimensions(CURRENT_LEASES, None, "w", every) == (("Operation", "RenewAllLeases"), ("WorkerIdentifier", "w"))
    assert dimensions(INITIALIZE_TIME, "s", "w", every) == (("Operation", "InitializeTask"),)
    assert dimensions(GET_RECORDS_TIME, "s", "w", ["WorkerIdentifier"]) == (("Operation", "ProcessTask"),)
