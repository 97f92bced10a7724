"""Kills the apply job's process between a real log and a real target: each unit is applied once and whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kainite.log.state.outcomes import outcomes_partition
from kainite.store.dynamodb import DynamoDBStore
from support.apply_world import World, insert, noted, update
from support.names import unique
from support.waiting import eventually

LIMIT = 60.0


@pytest.fixture
def table() -> str:
    return unique("kills")


@pytest.fixture
def world(request: pytest.FixtureRequest, dynamodb: Any, table: str) -> World:
    """Gives a log and a target: an empty database of the server whose fixture the test names."""
    store = DynamoDBStore(dynamodb, table)
    store.create()
    return World(store, request.getfixturevalue(request.param))


EFFECTS = (
    "after put_fence", "after raise_generation", "after begin_micro_batch", "before commit", "after commit",
    "before put_batch", "after put_batch", "after trim",
)  # fmt: skip
IN_THE_TARGET = ("after raise_generation", "before commit", "after commit", "after trim")


@pytest.mark.parametrize(
    ("world", "effect"),
    [*(("postgres", effect) for effect in EFFECTS), *(("mariadb", effect) for effect in IN_THE_TARGET)],
    indirect=["world"],
)
def test_a_killed_process_is_followed_by_one_that_finishes_its_work(
    world: World, moto_endpoint: str, table: str, effect: str
) -> None:
    for n in range(5):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(1) if n == 0 else update(1, n)))
    program = [sys.executable, str(Path(__file__).with_name("mortal_apply.py"))]
    died = subprocess.run(
        [*program, moto_endpoint, table, world.database.url, effect], timeout=LIMIT, capture_output=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    world.apply()

    assert world.items() == {1: 4}
    assert world.journal() == [f"T-{n}" for n in range(5)]
    assert world.log.statuses() == {}


@pytest.fixture
def properties(tmp_path: Path, world: World, moto_endpoint: str, table: str) -> Path:
    path = tmp_path / "app.properties"
    settings = {
        "applicationName": "kills", "streamName": "none", "executableName": "none", "regionName": "us-east-1",
        "dynamoDBEndpoint": moto_endpoint, "logTableName": table, "target": world.database.url,
        "applyMaster": "local[2]", "applyLeaseMillis": "2000",
    }  # fmt: skip
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


@contextlib.contextmanager
def kainite_apply(properties: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = Path(__file__).with_name("apply_in_small_steps.py")
    command = [sys.executable, str(program), str(properties), "40", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("world", ["postgres", "mariadb"], indirect=True)
def test_the_command_killed_while_it_applies_and_started_again(world: World, properties: Path, table: str) -> None:
    units = 200
    for n in range(units):
        world.log.unit(f"T-{n:03}", *noted(f"T-{n:03}", insert(n) if n < 20 else update(n % 20, n)))

    with kainite_apply(properties) as process:
        eventually(lambda: world.acknowledged())
        family = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(LIMIT)
        eventually(lambda: not any(child.is_running() for child in family))
    assert world.database.rows("SELECT log_partition FROM kainite_fence") == [(f"{table}/0",)]
    assert 0 < len(world.journal()) <= units

    with kainite_apply(properties) as process:
        eventually(lambda: len(world.journal()) == units)
        eventually(lambda: _take_outcomes(world) == {})
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=LIMIT)

    assert process.returncode == 0, errors.decode()
    assert json.loads(output)["committed"] > 0
    assert world.items() == {n: units - 20 + n for n in range(20)}
    assert world.journal() == [f"T-{n:03}" for n in range(units)]
    head = world.store.read_head(outcomes_partition("0"))
    assert head is not None
    assert (head.generation, head.released) == (2, True)


def _take_outcomes(world: World) -> dict[str, Any]:
    world.log.take_outcomes()
    return dict(world.log.statuses())
