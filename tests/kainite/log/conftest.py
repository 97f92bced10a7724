"""Stores for the log's tests: every suite that takes ``store`` runs on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kainite.log.dynamodb_store import DynamoDBStore
from kainite.log.memory_store import MemoryStore
from kainite.log.store import LogStore

_tables = iter(range(1_000_000))


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> LogStore:
    if request.param == "memory":
        return MemoryStore()
    return _dynamodb_store(request.getfixturevalue("dynamodb"))


@pytest.fixture
def dynamodb_store(dynamodb: Any) -> DynamoDBStore:
    return _dynamodb_store(dynamodb)


def _dynamodb_store(client: Any) -> DynamoDBStore:
    store = DynamoDBStore(client, f"log-{next(_tables)}")
    store.create()
    return store


@pytest.fixture
def partitions() -> Callable[[], str]:
    """Names of fresh log partitions: for Hypothesis tests, which use one store for many examples."""
    numbers = iter(range(1_000_000))
    return lambda: f"p{next(numbers)}"


@pytest.fixture
def table() -> Callable[[], str]:
    """Names of tables that no other test uses."""
    return lambda: f"log-{next(_tables)}"
