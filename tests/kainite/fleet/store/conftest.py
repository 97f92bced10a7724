"""Gives the coordination table's tests one of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.fleet.store.contract import FleetStore
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.fleet.store.memory import MemoryFleetStore
from support.dynamodb_doubles import Doubles
from support.names import unique


@pytest.fixture
def store(request: pytest.FixtureRequest, dynamodb_doubles: Doubles) -> FleetStore:
    """Gives an empty table in memory, or in the double that ``on_each_fleet_store`` names."""
    where: Any = request.param
    made: FleetStore = (
        MemoryFleetStore()
        if where == "memory"
        else DynamoDBFleetStore(dynamodb_doubles.client(where), unique("Fleet"), history_days=1)
    )
    made.create()
    return made
