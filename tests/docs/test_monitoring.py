"""Tests the dashboard and the alert rules: they load, and ask for series that Kainite publishes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kainite.observe.metric import APPLY_METRICS, DAEMON_METRICS, MetricKind
from kainite.observe.prometheus import Prometheus

PLACE = Path(__file__).parents[2] / "docs" / "monitoring"
SERIES = re.compile(r"\b(?:kainite|process)_[a-z_]+\b")
OF_HISTOGRAMS = re.compile("_(bucket|sum|count)$")


def published() -> set[str]:
    """Returns the names of all series of a daemon and of an apply job."""
    pages = (Prometheus(metrics).render([]).decode() for metrics in (DAEMON_METRICS, APPLY_METRICS))
    types = {name for page in pages for name in re.findall(r"^# TYPE (\S+)", page, re.MULTILINE)}
    timings = {metric.series for metric in (*DAEMON_METRICS, *APPLY_METRICS) if metric.kind is MetricKind.TIMING}
    return types | {f"{name}_bucket" for name in timings}


def panels() -> list[dict[str, Any]]:
    board: dict[str, Any] = json.loads((PLACE / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return list(board["panels"])


def rules() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((PLACE / "prometheus-alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    yield from (rule["expr"] for rule in rules())


@pytest.mark.parametrize("expression", list(expressions()))
def test_each_series_of_an_expression_is_published(expression: str) -> None:
    names = set(SERIES.findall(expression))
    assert names
    assert names <= published()


@pytest.mark.parametrize("expression", list(expressions()))
def test_counters_are_asked_for_their_rate_and_gauges_are_not(expression: str) -> None:
    counters = {metric.series for metric in (*DAEMON_METRICS, *APPLY_METRICS) if metric.kind is MetricKind.COUNTER}
    for name in SERIES.findall(expression):
        is_sum = name in counters or OF_HISTOGRAMS.search(name) is not None
        rated = re.search(rf"(rate|increase|absent)\({name}\b", expression) is not None
        assert rated == is_sum, name


def test_each_panel_has_a_place_of_its_own_and_a_title() -> None:
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()}
    assert len(places) == len({panel["id"] for panel in panels()}) == len({panel["title"] for panel in panels()})
    assert len(places) == len(panels()) > 0


def test_each_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 0
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".") or rule["annotations"]["summary"].endswith("?")
