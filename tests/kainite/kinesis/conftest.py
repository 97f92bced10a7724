"""A stream with shard ends and faults, and a client for it that does not try again by itself."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.config import Config

from kainite.kinesis.client import StreamClient
from support.kinesis_double import KinesisDouble


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble(shards=1, page=2)
    yield double
    double.close()


@pytest.fixture
def stream(double: KinesisDouble) -> Iterator[StreamClient]:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    client = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1", config=config)
    yield StreamClient(client, "orders")
    client.close()
