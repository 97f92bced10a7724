from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.checkpoint import TRIM_HORIZON
from kainite.base.errors import StreamError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.fan_out import FanOutReader
from kainite.kinesis.read.polling import PollingReader
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.observe.meter import SILENT
from kainite.settings import ChildProtocol, Retrieval, Settings, examine
from kainite.worker.retrieval_mode import open_retrieval
from support.fanout_double import FanOutDouble, shard_event
from support.kinesis_double import KinesisDouble
from support.sources import next_of

SHARD = "shardId-000000000000"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "app.properties"
    path.write_text("applicationName=app\nstreamName=orders\nexecutableName=python child.py\n")
    settings = examine(path, environment={}).settings_or_raise()
    return replace(settings, stream=replace(settings.stream, idle_between_reads=0.001, consumer_backoff=0.001))


def with_mode(settings: Settings, mode: Retrieval, **more: Any) -> Settings:
    return replace(settings, stream=replace(settings.stream, retrieval=mode, **more))


@pytest.fixture
def kinesis(pushing: FanOutDouble) -> Iterator[Any]:
    config = Config(retries={"total_max_attempts": 1})
    client = boto3.client("kinesis", endpoint_url=pushing.endpoint, region_name="us-east-1", config=config)
    yield client
    client.close()


LINES = [
    (ChildProtocol.JSON_LINES, b'"data":"MQ=="', b"subSequenceNumber"),
    (ChildProtocol.JSON_LINES_V0, b'"data":"MQ=="', None),
    (ChildProtocol.MARKERS, b" 0 MQ==\n", None),
]
"""The rendering of a record for each protocol: text that it holds, and text that tells it from an older form."""


@pytest.mark.parametrize("mode", list(Retrieval))
@pytest.mark.parametrize(("protocol", "holds", "mark"), LINES)
async def test_sources_read_in_the_mode_of_the_settings_and_render_for_the_protocol(
    pushing: FanOutDouble,
    kinesis: Any,
    settings: Settings,
    mode: Retrieval,
    protocol: ChildProtocol,
    holds: bytes,
    mark: bytes | None,
) -> None:
    put = pushing.rest.put(b"1")
    pushing.answer(shard_event(put, data="MQ=="), then="hold")
    settings = with_mode(settings, mode, consumer_arn="arn:consumer")
    sources = open_retrieval(kinesis, StreamClient(kinesis, "orders"), settings, SILENT)
    source = sources(protocol)(SHARD, None, TRIM_HORIZON, settings.stream, cut_at=None)
    batch = await next_of(source)
    await source.close()
    assert isinstance(source, FanOutReader if mode is Retrieval.FANOUT else PollingReader)
    assert isinstance(batch, RecordBatch)
    assert holds in batch.line
    assert mark is None or mark in batch.line
    assert pushing.rest.count("GetRecords") == 0 or mode is not Retrieval.FANOUT


async def test_by_default_a_stream_is_read_by_fan_out_over_http2_where_it_can_be_spoken(
    pushing_http2: FanOutDouble, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    put = pushing_http2.rest.put(b"1")
    pushing_http2.answer(shard_event(put, data="MQ=="), then="hold")
    client: Any = boto3.client("kinesis", endpoint_url=pushing_http2.endpoint, region_name="us-east-1")
    settings = with_mode(settings, Retrieval.DEFAULT, consumer_arn="arn:consumer")
    with caplog.at_level(logging.INFO):
        sources = open_retrieval(client, StreamClient(client, "orders"), settings, SILENT)
    source = sources(ChildProtocol.JSON_LINES)(SHARD, None, TRIM_HORIZON, settings.stream, cut_at=None)
    batch = await next_of(source)
    await source.close()
    client.close()
    assert isinstance(batch, RecordBatch)
    assert b'"data":"MQ=="' in batch.line
    assert [headers[":path"] for headers in pushing_http2.headers] == ["/"]
    assert [record.getMessage() for record in caplog.records] == ["fan-out over HTTP/2"]


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (Retrieval.POLLING, []),
        (Retrieval.DEFAULT, ["polling: fan-out needs HTTP/2"]),
        (Retrieval.FANOUT, ["fan-out over HTTP/1.1, which AWS does not document"]),
    ],
)
def test_what_is_used_in_place_of_http2_is_said_once(
    kinesis: Any, settings: Settings, mode: Retrieval, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        open_retrieval(kinesis, StreamClient(kinesis, "orders"), with_mode(settings, mode, consumer_arn="a"), SILENT)
    assert [record.getMessage() for record in caplog.records] == told


def test_a_consumer_that_cannot_be_registered_is_an_error(
    double: KinesisDouble, kinesis: Any, settings: Settings
) -> None:
    double.fail("DescribeStreamSummary", "AccessDeniedException")
    stream = StreamClient(kinesis, "orders")
    with pytest.raises(StreamError, match="DescribeStreamSummary is refused, which retrievalMode = FANOUT needs"):
        open_retrieval(kinesis, stream, with_mode(settings, Retrieval.FANOUT), SILENT)


def test_polling_registers_no_consumer(double: KinesisDouble, kinesis: Any, settings: Settings) -> None:
    open_retrieval(kinesis, StreamClient(kinesis, "orders"), with_mode(settings, Retrieval.DEFAULT), SILENT)
    assert not double.requests
