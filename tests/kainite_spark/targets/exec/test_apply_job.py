"""``kainite apply`` with a loader: real Spark, whose worker processes start loaders."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kainite.log.format.entry import UnitStatus
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.delta import Delta, Operation
from support.apply_world import World, insert, noted, update
from support.loaders import documented_loader
from support.names import unique

LIMIT = 120.0


@pytest.fixture
def table() -> str:
    return unique("loaders")


@pytest.fixture
def world(dynamodb: Any, table: str, tmp_path: Path) -> Iterator[World]:
    path = tmp_path / "target.db"
    sqlite3.connect(path).close()
    store = DynamoDBStore(dynamodb, table)
    store.create()
    world = World(store, f"sqlite:///{path}", target=documented_loader(tmp_path, path))
    yield world
    world.target.close()


@pytest.fixture
def properties(tmp_path: Path, world: World, moto_endpoint: str, table: str) -> Path:
    write_catalogue(world.catalogue, tmp_path / "catalogue.json")
    settings = {
        "applicationName": "loaders", "streamName": "none", "executableName": "none", "regionName": "us-east-1",
        "dynamoDBEndpoint": moto_endpoint, "logTableName": table, "target": world.database.target,
        "catalogueFile": "catalogue.json", "applyMaster": "local[2]",
    }  # fmt: skip
    path = tmp_path / "app.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(180)
def test_the_command_loads_each_unit_once_and_parents_first(world: World, properties: Path) -> None:
    child = Delta("item", Operation.INSERT, {"id": 8}, {"id": 8, "v": 0, "parent_id": 3}, {})
    parent = Delta("parent", Operation.INSERT, {"id": 3}, {"id": 3, "v": 1}, {})
    world.log.unit("family", *noted("family", child, parent))
    for n in range(8):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(n) if n < 4 else update(n - 4, n)))
    world.log.unit("bad", *noted("bad", insert(9, -1)))
    world.log.unit("behind", *noted("behind", update(9, 1)))

    program = Path(__file__).parents[3] / "end_to_end" / "apply_in_small_steps.py"
    command = [sys.executable, str(program), str(properties), "6", "500", "--once"]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)

    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    assert (said["committed"], said["failed"], said["blocked"]) == (9, 1, 1)
    world.log.take_outcomes()
    assert world.log.statuses() == {"bad": UnitStatus.FAILED, "behind": UnitStatus.BLOCKED}
    assert world.items() == {0: 4, 1: 5, 2: 6, 3: 7, 8: 0}
    assert world.journal() == ["T-0", "T-1", "T-2", "T-3", "T-4", "T-5", "T-6", "T-7", "family"]
