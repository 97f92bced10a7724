"""The table of metrics: both systems' rules for names."""

from __future__ import annotations

import re

import pytest

from kainite.observe.metric import METRICS, Metric, MetricKind, MetricUnit

# https://prometheus.io/docs/practices/naming/
SUFFIX = {
    (MetricKind.COUNTER, MetricUnit.COUNT): "_total",
    (MetricKind.COUNTER, MetricUnit.BYTES): "_bytes_total",
    (MetricKind.GAUGE, MetricUnit.MILLIS): "_seconds",
    (MetricKind.TIMING, MetricUnit.MILLIS): "_seconds",
}


def test_no_name_is_used_twice() -> None:
    assert len({metric.series for metric in METRICS}) == len(METRICS)
    assert len({(metric.operation, metric.name) for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.series)
def test_series_are_named_as_prometheus_wants_it(metric: Metric) -> None:
    assert re.fullmatch(r"kainite(_[a-z]+)+", metric.series)
    assert metric.series.endswith(SUFFIX.get((metric.kind, metric.unit), ""))
    assert (metric.kind is MetricKind.COUNTER) == metric.series.endswith("_total")
    assert not (metric.per_shard and metric.per_worker), "KCL sets one or the other"
