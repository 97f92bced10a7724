"""Tests the dashboard and the alert rules: they ask for series that Kainite publishes, and fire when they should."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kainite.cli.main import main
from kainite.observe.metric import APPLY_METRICS, DAEMON_METRICS, EXTRACT_METRICS, METRICS, MetricKind
from kainite.observe.prometheus import Prometheus

PLACE = Path(__file__).parents[2] / "docs" / "monitoring"
PROMTOOL = Path(sys.prefix) / "peers/prometheus/promtool"
SERIES = re.compile(r"\b(?:(?:kainite|process)_[a-z_]+|up(?={))\b")
OF_HISTOGRAMS = re.compile("_(bucket|sum|count)$")
OF_PROMETHEUS = frozenset({"up"})
"""Series that Prometheus itself adds to each process that it scrapes."""
HELP = re.compile(r"curl http://.+/(?:health|ready)|kainite ([a-z-]+)(?: ([a-z-]+))?")
"""What helps: a page of the endpoint, or a command."""


def published() -> set[str]:
    """Returns the names of all series of daemons, apply jobs and extractions."""
    kinds = (DAEMON_METRICS, APPLY_METRICS, EXTRACT_METRICS)
    pages = (Prometheus(metrics).render([]).decode() for metrics in kinds)
    types = {name for page in pages for name in re.findall(r"^# TYPE (\S+)", page, re.MULTILINE)}
    timings = {metric.series for metric in METRICS if metric.kind is MetricKind.TIMING}
    return types | {f"{name}_{end}" for name in timings for end in ("bucket", "count", "sum")} | OF_PROMETHEUS


def panels() -> list[dict[str, Any]]:
    board: dict[str, Any] = json.loads((PLACE / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return list(board["panels"])


def rules() -> list[dict[str, Any]]:
    return [rule for group in loaded("prometheus-alerts.yaml")["groups"] for rule in group["rules"]]


def cases(alert: str, *, firing: bool) -> list[dict[str, Any]]:
    """Returns the cases of the rules' test in which a rule fires, or in which it does not."""
    tests: list[dict[str, Any]] = loaded("prometheus-alerts-test.yaml")["tests"]
    return [
        test
        for test in tests
        for asked in test["alert_rule_test"]
        if asked["alertname"] == alert and bool(asked["exp_alerts"]) == firing
    ]


@functools.cache
def loaded(name: str) -> dict[str, Any]:
    page: dict[str, Any] = yaml.safe_load((PLACE / name).read_text(encoding="utf-8"))
    return page


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
    counters = {metric.series for metric in METRICS if metric.kind is MetricKind.COUNTER}
    for name in SERIES.findall(expression):
        is_sum = name in counters or OF_HISTOGRAMS.search(name) is not None
        rated = re.search(rf"(rate|increase)\({name}\b", expression) is not None
        assert rated == is_sum or f"absent({name})" in expression, name


def test_each_panel_has_a_place_of_its_own_and_a_title() -> None:
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()}
    assert len(places) == len({panel["id"] for panel in panels()}) == len({panel["title"] for panel in panels()})
    assert len(places) == len(panels()) > 0


def test_no_two_alerts_have_one_name() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 0


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alert_says_how_bad_it_is_and_which_command_helps(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("warning", "critical")
    named = list(HELP.finditer(rule["annotations"]["summary"]))
    assert named
    for command, subcommand in (each.groups() for each in named if each[1]):
        found = main.get_command(click.Context(main), command)
        assert found is not None, command
        if isinstance(found, click.Group):
            assert subcommand in found.list_commands(click.Context(found)), f"{command} {subcommand}"


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_rule_has_series_that_fire_it_and_series_that_do_not(rule: dict[str, Any]) -> None:
    assert cases(rule["alert"], firing=True)
    quiet = [series["series"] for case in cases(rule["alert"], firing=False) for series in case["input_series"]]
    assert set(SERIES.findall(rule["expr"])) - set(SERIES.findall(f"{quiet}")) == set()


def test_the_rules_fire_on_these_series_and_not_on_those() -> None:
    promtool("test", "rules", PLACE / "prometheus-alerts-test.yaml")


def test_prometheus_understands_each_expression_of_the_dashboard(tmp_path: Path) -> None:
    asked = [target["expr"].replace("$__rate_interval", "5m") for panel in panels() for target in panel["targets"]]
    recorded = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(asked)]
    rules_file = tmp_path / "dashboard.yaml"
    rules_file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": recorded}]}), encoding="utf-8")
    promtool("check", "rules", rules_file)


def promtool(*args: str | Path) -> None:
    """Runs promtool, which must find nothing wrong."""
    assert PROMTOOL.exists(), "promtool is missing: make peers"
    ended = subprocess.run([PROMTOOL, *args], capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
