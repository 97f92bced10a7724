"""A lease table of the test's own, and a stream whose shards can be split, merged and ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kainite.kinesis.client import StreamClient
from kainite.leases.table import LeaseTable
from support.kinesis_double import KinesisDouble, stream_of
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
    with stream_of(double) as stream:
        yield stream
