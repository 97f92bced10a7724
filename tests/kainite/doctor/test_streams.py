"""A stream that is missing or keeps records for a day, a consumer that is not registered, a clock that is off."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from functools import partial
from typing import Any

import boto3
import pytest

from kainite.doctor.finding import FindingState
from kainite.doctor.streams import look_at_clock
from support.doctored import DoctoredFile
from support.http_double import DoubleServer, JsonHandler


def test_a_stream_that_is_missing(doctored: DoctoredFile) -> None:
    doctored.write(streamName="elsewhere")
    [finding] = doctored.bad()
    assert (finding.area, finding.what) == ("stream", "stream elsewhere does not exist")
    assert "create-stream --stream-name elsewhere" in finding.remedy


def test_a_retention_of_a_day(doctored: DoctoredFile, kinesis: Any) -> None:
    kinesis.decrease_stream_retention_period(StreamName=doctored.name, RetentionPeriodHours=24)
    [finding] = doctored.bad()
    assert finding.state is FindingState.WARNING
    assert "records stay 24 h" in finding.what
    assert "increase-stream-retention-period" in finding.remedy


def test_an_output_that_is_missing(doctored: DoctoredFile) -> None:
    doctored.write(output="stream:next", childProtocol="markers", unitsOfWork="false", target="", fleet="false")
    assert [finding.what for finding in doctored.bad()] == ["stream next does not exist"]


def test_a_consumer_is_registered_by_the_start(doctored: DoctoredFile, kinesis: Any) -> None:
    doctored.write(retrievalMode="FANOUT")
    assert any("registers the consumer" in finding.what for finding in doctored.asked(["run"]))
    arn = kinesis.describe_stream_summary(StreamName=doctored.name)["StreamDescriptionSummary"]["StreamARN"]
    kinesis.register_stream_consumer(StreamARN=arn, ConsumerName=doctored.name)
    assert any(f"consumer {doctored.name} is ACTIVE" in finding.what for finding in doctored.asked(["run"]))
    doctored.write(retrievalMode="FANOUT", **{"fanoutConfig.consumerArn": f"{arn}/consumer/other:1"})
    assert any(finding.what.startswith("kinesis:DescribeStreamConsumer") for finding in doctored.bad(["run"]))


def test_no_credentials(doctored: DoctoredFile) -> None:
    doctored.write(AwsCredentialsProvider="ProfileCredentialsProvider|nobody")
    assert {"stream", "lease table"} <= {finding.area for finding in doctored.bad(["run"])}


@pytest.mark.parametrize(
    ("off", "state"), [(0, FindingState.WELL), (60, FindingState.WARNING), (900, FindingState.WRONG)]
)
def test_the_clock_of_aws(off: int, state: FindingState) -> None:
    class Late(JsonHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() - off, usegmt=True)

        def serve(self, operation: str, request: dict[str, Any]) -> None:
            self.answer(400, json.dumps({"__type": "AccessDeniedException", "message": "no"}).encode())

    server = DoubleServer(Late)
    kinesis = boto3.client("kinesis", endpoint_url=server.endpoint, region_name="us-east-1")
    try:
        [finding] = look_at_clock(partial(kinesis.list_shards, StreamName="s"))
    finally:
        kinesis.close()
        server.close()
    assert finding.state is state
