"""Stores for the log's tests: a suite that takes ``store`` runs in memory and on moto, the contract on all doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kainite.log.store.contract import LogStore
from kainite.log.store.dynamodb import DynamoDBStore
from kainite.log.store.memory import MemoryStore
from support.dynamodb_doubles import STRIPED, Double, Doubles
from support.log_builders import fork
from support.names import unique


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
