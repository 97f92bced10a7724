"""A stream with shard ends and faults, and a client for it that does not try again by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kainite.kinesis.client import StreamClient
from support.kinesis_double import KinesisDouble, stream_of


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble(shards=1, page=2)
    yield double
    double.close()


@pytest.fixture
def stream(double: KinesisDouble) -> Iterator[StreamClient]:
    with stream_of(double) as stream:
        yield stream
