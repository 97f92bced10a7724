"""A stream whose shards can end, which moto's cannot; stores for the tests of the log, in memory and on moto."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from kainite.log.contract import LogStore
from kainite.store.dynamodb import DynamoDBStore
from kainite.store.memory import MemoryStore
from support.certificates import Authority
from support.daemon_world import World
from support.dynamodb_doubles import STRIPED, Double, Doubles
from support.fanout_double import FanOutDouble
from support.kinesis_double import KinesisDouble
from support.log_builders import fork
from support.names import unique


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble()
    yield double
    double.close()


@pytest.fixture
def pushing_http1(double: KinesisDouble) -> Iterator[FanOutDouble]:
    """Yields a double of SubscribeToShard beside ``double``, over HTTP/1.1."""
    pushing = FanOutDouble(double)
    yield pushing
    pushing.close()


@pytest.fixture
def pushing(pushing_http1: FanOutDouble) -> FanOutDouble:
    """Returns the double of SubscribeToShard that most tests use."""
    return pushing_http1


@pytest.fixture
def pushing_http2(double: KinesisDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FanOutDouble]:
    """Yields a double as :func:`pushing_http1` over HTTP/2; boto3 and the daemon trust its certificate."""
    authority = Authority(tmp_path, "authority")
    certificate = authority.sign("kinesis")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate.certificate, certificate.key)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.trust))
    pushing = FanOutDouble(double, tls)
    yield pushing
    pushing.close()


@pytest.fixture
def ending(double: KinesisDouble, dynamodb: Any, tmp_path: Path) -> Iterator[World]:
    """Yields a world on ``double``."""
    kinesis = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1")
    yield World(kinesis, dynamodb, unique("stream"), tmp_path)
    kinesis.close()


@pytest.fixture(params=["memory", Double.MOTO])
def store(request: pytest.FixtureRequest, dynamodb_doubles: Doubles) -> LogStore:
    name = str(request.param)
    store = _store(name.removesuffix(STRIPED), dynamodb_doubles)
    if name.endswith(STRIPED):
        fork(store, "0")
    return store


def _store(name: str, dynamodb_doubles: Doubles) -> LogStore:
    return MemoryStore() if name == "memory" else _dynamodb_store(dynamodb_doubles.client(Double(name)))


@pytest.fixture
def dynamodb_store(dynamodb: Any) -> DynamoDBStore:
    return _dynamodb_store(dynamodb)


def _dynamodb_store(client: Any) -> DynamoDBStore:
    store = DynamoDBStore(client, unique("log"))
    store.create()
    return store


@pytest.fixture
def partitions() -> Callable[[], str]:
    """Returns names of fresh log partitions: for Hypothesis tests, which use one store for many examples."""
    numbers = iter(range(1_000_000))
    return lambda: f"p{next(numbers)}"


@pytest.fixture
def table() -> Callable[[], str]:
    """Returns names of tables that no other test uses."""
    return lambda: unique("log")
