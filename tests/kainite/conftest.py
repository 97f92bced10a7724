"""A stream whose shards can end, which moto's cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from support.daemon_world import World
from support.fanout_double import FanOutDouble
from support.kinesis_double import KinesisDouble
from support.names import unique


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble()
    yield double
    double.close()


@pytest.fixture
def pushing(double: KinesisDouble) -> Iterator[FanOutDouble]:
    """Yields a double of SubscribeToShard beside ``double``."""
    pushing = FanOutDouble(double)
    yield pushing
    pushing.close()


@pytest.fixture
def ending(double: KinesisDouble, dynamodb: Any, tmp_path: Path) -> Iterator[World]:
    """Yields a world on ``double``."""
    kinesis = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1")
    yield World(kinesis, dynamodb, unique("stream"), tmp_path)
    kinesis.close()
