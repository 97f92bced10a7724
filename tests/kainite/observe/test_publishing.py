"""Everything together: what the settings ask for is served over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.observe import publishing as module
from kainite.observe.health import HealthLimits, WorkerFacts, judge
from kainite.observe.metric import HEALTHY, PROBLEMS, PROCESS_METRICS, READY, RECORDS_PROCESSED
from kainite.observe.publishing import Publishers, cloudwatch_level, publishing, publishing_of
from kainite.observe.shard_status import ShardStatus
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
from support.metric_sums import Sums
from support.waiting import until

DOUBLE = AwsSettings("us-east-1", kinesis_endpoint="http://127.0.0.1:4566")
SETTINGS = Settings(
    Path("app.properties"),
    DOUBLE,
    StreamSettings("stream"),
    LeaseSettings("app", "app", "w"),
    ChildSettings(("cat",)),
    LogSettings("log", "w"),
    UowSettings(),
    ApplySettings(),
    MetricsSettings(port=0, hung_after=300),
)
QUIET = ShardStatus("s-1", "PROCESSING", pid=1)
HUNG = ShardStatus("s-2", "PROCESSING", pid=2, action="processRecords", silent=500)
WELL = WorkerFacts(leases=1, reached=1)
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


async def get(port: int, path: str) -> tuple[int, str]:
    def fetch() -> tuple[int, str]:
        try:
            with DIRECTLY.open(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await asyncio.to_thread(fetch)


def announced_port(caplog: pytest.LogCaptureFixture) -> int:
    (fields,) = [r.kainite_fields for r in caplog.records if r.message == "endpoint ready"]  # type: ignore[attr-defined]
    port: int = fields["port"]
    return port


def gauges(page: str) -> dict[str, float]:
    """Returns the gauges that follow from the verdict."""
    names = {metric.series for metric in PROCESS_METRICS}
    lines = (line.split() for line in page.splitlines())
    return {line[0]: float(line[1]) for line in lines if line[0] in names}


async def test_pages_follow_what_is_observed_and_what_shards_do(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kainite")
    shards = [QUIET]
    async with publishing(SETTINGS, lambda: shards, lambda: WELL) as meter:
        port = announced_port(caplog)
        meter.observe(RECORDS_PROCESSED, 3, "s-1")
        metrics = await get(port, "/metrics")
        healthy = await get(port, "/health")
        shards.append(HUNG)
        unhealthy, ready, live = await get(port, "/health"), await get(port, "/ready"), await get(port, "/live")
        told = await get(port, "/metrics")

    assert gauges(metrics[1]) == {"kainite_healthy": 1, "kainite_ready": 1, "kainite_problems": 0}
    assert gauges(told[1]) == {"kainite_healthy": 0, "kainite_ready": 1, "kainite_problems": 1}
    assert metrics[0] == 200
    assert 'kainite_records_processed_total{shard="s-1"} 3.0' in metrics[1]
    assert 'kainite_shards{health="quiet"} 1.0' in metrics[1]
    assert healthy[0] == 200
    assert unhealthy[0] == 503
    assert json.loads(unhealthy[1])["problems"] == ["s-2: the child has not answered processRecords for 8 min"]
    assert (ready[0], live[0]) == (200, 200)


async def test_a_daemon_that_has_not_read_its_leases_is_not_ready(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kainite")
    async with publishing(SETTINGS, list, WorkerFacts):
        status, body = await get(announced_port(caplog), "/ready")
        _, page = await get(announced_port(caplog), "/metrics")

    assert status == 503
    assert gauges(page)["kainite_ready"] == 0
    assert json.loads(body)["not_ready"] == ["the lease table was not read yet"]


@pytest.mark.parametrize(
    ("aws", "level", "published"),
    [
        (AwsSettings(), None, MetricsLevel.SUMMARY),
        (DOUBLE, None, MetricsLevel.NONE),
        (replace(DOUBLE, cloudwatch_endpoint="http://127.0.0.1:4566"), None, MetricsLevel.SUMMARY),
        (DOUBLE, MetricsLevel.DETAILED, MetricsLevel.DETAILED),
        (AwsSettings(), MetricsLevel.NONE, MetricsLevel.NONE),
    ],
)
def test_nothing_goes_to_aws_from_a_double_unless_it_is_asked_for(
    aws: AwsSettings, level: MetricsLevel | None, published: MetricsLevel
) -> None:
    assert cloudwatch_level(replace(SETTINGS, aws=aws, metrics=MetricsSettings(level=level))) is published


def test_what_is_not_asked_for_is_not_imported() -> None:
    program = (
        "import sys, kainite.observe.publishing; print([m for m in sys.modules if m.startswith(('prom', 'boto'))])"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout == "[]\n"


async def test_the_verdict_goes_to_cloudwatch_without_any_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAMPLE_S", 0.01)
    sums = Sums()

    async def recording(*_: object) -> Sums:
        return sums

    monkeypatch.setattr(module, "_cloudwatch", recording)
    limits = HealthLimits.of(SETTINGS)
    wanted = Publishers(PROCESS_METRICS, MetricsLevel.DETAILED, port=None)
    async with publishing_of(SETTINGS, wanted, lambda: judge([HUNG], WorkerFacts(), limits)):
        await until(lambda: PROBLEMS in sums.seen)

    assert [sums.values[metric] for metric in (HEALTHY, READY, PROBLEMS)] == [0, 0, 1]
