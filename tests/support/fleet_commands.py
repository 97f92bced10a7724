"""A fleet's table, on DynamoDB or in memory, and ``kainite fleet`` on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main
from kainite.fleet.model.records import Duty, Lead, Picture, Work, Worker
from kainite.fleet.store.contract import FleetCommit, FleetStore, PutRecord
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.fleet.store.memory import MemoryFleetStore
from kainite.operations.carrying_out import Operations
from support.names import unique


class FleetCommands:
    """A fleet's table, and the command on it."""

    def __init__(self, dynamodb: Any, endpoint: str, folder: Path) -> None:
        name = unique("app")
        self.path = folder / "app.properties"
        self.path.write_text(f"applicationName={name}\nregionName=us-east-1\ndynamoDBEndpoint={endpoint}\n")
        self.store: FleetStore = DynamoDBFleetStore(dynamodb, f"{name}-Fleet")

    def filled(self) -> FleetCommands:
        self.store.create()
        worker = Worker("a", "1", labels=("big",))
        records = (worker, Lead("a", "1", 1), Duty("d", Work(command=("true",))).given_to(worker))
        for record in records:
            assert self.store.commit(FleetCommit((PutRecord(record),)))
        return self

    def __call__(self, command: str, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["fleet", command, "-p", str(self.path), *arguments])

    def picture(self) -> Picture:
        return self.store.read()


@pytest.fixture
def in_memory(fleet: FleetCommands, monkeypatch: pytest.MonkeyPatch) -> FleetCommands:
    """Gives a fleet whose table is in memory: a hundred times as fast."""
    fleet.store = MemoryFleetStore()
    monkeypatch.setattr("kainite.cli.fleet.store_of", lambda _: fleet.store)
    monkeypatch.setattr(Operations, "fleet", property(lambda _: fleet.store))
    return fleet.filled()


@pytest.fixture
def fleet(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> FleetCommands:
    return FleetCommands(dynamodb, moto_endpoint, tmp_path)
