"""The data that CloudWatch gets, on moto's server and from a client that records its calls."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kainite.aws import clients as aws
from kainite.observe import cloudwatch
from kainite.observe.cloudwatch import CloudWatch
from kainite.observe.metric import CURRENT_LEASES, GET_RECORDS_TIME, PROCESS_RECORDS_TIME, RECORDS_PROCESSED
from kainite.settings import AwsSettings, MetricsLevel, MetricsSettings
from support.names import unique

FOR_EVER = 3600.0


class Calls:
    """A client that notes what it is given, after failing as often as told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.made: list[list[dict[str, Any]]] = []

    def put_metric_data(self, *, Namespace: str, MetricData: list[dict[str, Any]]) -> None:  # noqa: N803
        if self.failures:
            self.failures -= 1
            raise OSError("no route to CloudWatch")
        self.made.append(MetricData)


def sink(calls: Calls, level: MetricsLevel = MetricsLevel.DETAILED, **settings: Any) -> CloudWatch:
    connect: Any = lambda: calls  # noqa: E731
    return CloudWatch(connect, "app", "w", level, MetricsSettings(buffer_time=FOR_EVER, **settings))


async def test_sums_arrive_in_the_applications_namespace(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudwatch, "LAST_FLUSH_S", 60.0)
    application = unique("app")
    client = aws.client("cloudwatch", AwsSettings("us-east-1", cloudwatch_endpoint=moto_endpoint))
    published = CloudWatch(
        lambda: client, application, "w", MetricsLevel.SUMMARY, MetricsSettings(buffer_time=FOR_EVER)
    )

    async with published.running():
        for records in (5, 1, 3):
            published.observe(RECORDS_PROCESSED, records, "s-1")
        published.observe(CURRENT_LEASES, True, None)  # callers observe truth values too
        published.observe(GET_RECORDS_TIME, 9, "s-1")  # not of this level

    found = client.list_metrics(Namespace=application)["Metrics"]
    assert sorted(metric["MetricName"] for metric in found) == ["CurrentLeases", "RecordsProcessed"]
    now = datetime.now(UTC)
    answer = client.get_metric_statistics(
        Namespace=application,
        MetricName="RecordsProcessed",
        Dimensions=[{"Name": "Operation", "Value": "ProcessTask"}, {"Name": "ShardId", "Value": "s-1"}],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
        Period=7200,
        Statistics=["Sum", "SampleCount", "Minimum", "Maximum"],
    )
    (point,) = answer["Datapoints"]
    assert (point["Sum"], point["SampleCount"], point["Minimum"], point["Maximum"]) == (9, 3, 1, 5)


def test_a_datum_has_kcls_name_unit_and_dimensions() -> None:
    calls = Calls()
    published = sink(calls)
    published.observe(PROCESS_RECORDS_TIME, 12.5, "s-1")

    published.flush()

    assert calls.made == [
        [
            {
                "MetricName": "RecordProcessor.processRecords.Time",
                "Dimensions": [{"Name": "Operation", "Value": "ProcessTask"}, {"Name": "ShardId", "Value": "s-1"}],
                "Unit": "Milliseconds",
                "StatisticValues": {"SampleCount": 1, "Sum": 12.5, "Minimum": 12.5, "Maximum": 12.5},
            }
        ]
    ]


def test_shards_that_no_dimension_tells_apart_are_one_sum() -> None:
    calls = Calls()
    published = sink(calls, dimensions=("Operation",))
    for number in range(5):
        published.observe(RECORDS_PROCESSED, number, f"s-{number}")

    published.flush()

    ((datum,),) = calls.made
    assert datum["Dimensions"] == [{"Name": "Operation", "Value": "ProcessTask"}]
    assert datum["StatisticValues"] == {"SampleCount": 5, "Sum": 10, "Minimum": 0, "Maximum": 4}


def test_many_sums_take_several_calls_and_nothing_is_sent_twice() -> None:
    calls = Calls()
    published = sink(calls)
    for number in range(cloudwatch.BATCH + 1):
        published.observe(RECORDS_PROCESSED, 1, f"s-{number}")

    published.flush()
    published.flush()

    assert [len(batch) for batch in calls.made] == [cloudwatch.BATCH, 1]


def test_what_does_not_fit_the_queue_is_dropped_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    calls = Calls()
    published = sink(calls, queue_size=2)
    for number in range(10):
        published.observe(RECORDS_PROCESSED, 1, f"s-{number % 5}")

    published.flush()

    assert [datum["StatisticValues"]["SampleCount"] for datum in calls.made[0]] == [2, 2]
    assert [(r.message, r.kainite_fields["observations"]) for r in caplog.records] == [  # type: ignore[attr-defined]
        ("metrics dropped: more of them than metricsMaxQueueSize", 6)
    ]


def test_failing_and_working_again_are_said_once_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kainite")
    calls = Calls(failures=3)
    published = sink(calls)
    for _ in range(5):
        published.observe(RECORDS_PROCESSED, 1, "s-1")
        published.flush()

    assert [record.message for record in caplog.records] == [
        "metrics not published: the worker goes on without",
        "metrics published again",
    ]
    assert len(calls.made) == 2


async def test_a_cloudwatch_that_is_not_there_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    settings = AwsSettings("us-east-1", cloudwatch_endpoint="http://127.0.0.1:1")
    published = CloudWatch(
        lambda: aws.client("cloudwatch", settings), "app", "w", MetricsLevel.SUMMARY, MetricsSettings()
    )

    async with published.running():
        published.observe(RECORDS_PROCESSED, 1, "s-1")

    assert any(record.levelno == logging.WARNING for record in caplog.records)
