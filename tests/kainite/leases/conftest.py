"""A lease table of the test's own, and a stream whose shards can be split, merged and ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.kinesis.client import StreamClient
from kainite.leases.table import LeaseTable
from support.kinesis_double import KinesisDouble
from support.names import unique


@pytest.fixture
def table(dynamodb: Any) -> LeaseTable:
    table = LeaseTable(dynamodb, unique("leases"))
    table.create()
    return table


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble(shards=2)
    yield double
    double.close()


@pytest.fixture
def stream(double: KinesisDouble) -> Iterator[StreamClient]:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    client = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1", config=config)
    yield StreamClient(client, "orders")
    client.close()
