"""Tests that an apply job's metrics and health are served over HTTP."""

from __future__ import annotations

import json
import logging
import socket
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.observe.metric import APPLIED_UNITS
from kainite.settings import (
    ApplySettings,
    AwsSettings,
    ChildSettings,
    LeaseSettings,
    LogSettings,
    MetricsLevel,
    MetricsSettings,
    Settings,
    StreamSettings,
    UowSettings,
)
from kainite_spark.driver.job_health import JobHealth, JobStage
from kainite_spark.driver.publishing import cloudwatch_level, publishing

SETTINGS = Settings(
    Path("app.properties"),
    AwsSettings("us-east-1", dynamodb_endpoint="http://127.0.0.1:4566"),
    StreamSettings("stream"),
    LeaseSettings("app", "app", "w"),
    ChildSettings(("cat",)),
    LogSettings("log", "w"),
    UowSettings(),
    ApplySettings(metrics_port=0),
    MetricsSettings(),
)
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with DIRECTLY.open(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def port_told(caplog: pytest.LogCaptureFixture) -> int:
    record = next(record for record in caplog.records if record.message == "endpoint ready")
    return int(record.__dict__["kainite_fields"]["port"])


def test_the_job_s_metrics_and_health_are_served(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    health = JobHealth()
    with publishing(SETTINGS, health.report) as meter:
        port = port_told(caplog)
        meter.observe(APPLIED_UNITS, 3)
        page = get(port, "/metrics")[1]
        assert "kainite_apply_units_committed_total 3.0\n" in page
        assert "kainite_leases_held" not in page, "the daemon's"
        assert get(port, "/ready")[0] == 503
        health.enter(JobStage.APPLYING)
        assert get(port, "/ready")[0] == 200
        health.waits_for("the target is away")
        status, body = get(port, "/health")
        assert (status, json.loads(body)["problems"]) == (503, ["the target is away"])
    with pytest.raises(OSError):
        get(port, "/live")


def test_a_port_in_use_ends_the_start_with_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = replace(SETTINGS, apply=ApplySettings(metrics_port=port))
        with (
            pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{port}"),
            publishing(settings, JobHealth().report),
        ):
            pass


def test_a_double_of_dynamodb_has_no_cloudwatch() -> None:
    assert cloudwatch_level(SETTINGS) is MetricsLevel.NONE
    there = replace(SETTINGS, aws=AwsSettings("us-east-1"))
    assert cloudwatch_level(there) is MetricsLevel.SUMMARY
    told = replace(SETTINGS, metrics=MetricsSettings(MetricsLevel.DETAILED))
    assert cloudwatch_level(told) is MetricsLevel.DETAILED
