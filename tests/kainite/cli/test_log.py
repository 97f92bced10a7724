"""``kainite log show``, ``kainite uow retry`` and ``discard``, as a person calls them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.owner.mount import mount
from kainite.log.owner.owner import LogOwner
from kainite.log.owner.upkeep import outcomes_partition
from kainite.log.store.dynamodb import DynamoDBStore
from kainite.settings import LogSettings, UowSettings
from support.log_builders import fragment
from support.names import unique

LIMIT = 10.0


@pytest.fixture
def table() -> Callable[[], str]:
    """Returns names of tables that no other test uses."""
    return lambda: unique("log")


@dataclass
class World:
    properties: Path
    table: str
    store: DynamoDBStore
    owner: LogOwner

    async def kainite(self, *arguments: str) -> tuple[int, str, str]:
        """Runs the command; returns exit status, standard output and standard error."""
        command = [sys.executable, "-m", "kainite", *arguments[:2], "-p", str(self.properties), *arguments[2:]]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200"},
        )
        output, errors = await asyncio.wait_for(process.communicate(), 30)
        return process.returncode or 0, output.decode(), errors.decode()

    async def rows(self, *options: str) -> list[dict[str, Any]]:
        status, output, errors = await self.kainite("log", "show", "--json", *options)
        assert status == 0, errors
        return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
async def world(dynamodb: Any, moto_endpoint: str, tmp_path: Path, table: Callable[[], str]) -> AsyncIterator[World]:
    """Writes a log with a unit of each status: committed, failed, blocked, in progress, collecting."""
    name = table()
    properties = tmp_path / "app.properties"
    properties.write_text(
        f"executableName = true\nstreamName = s\napplicationName = app\nregionName = us-east-1\n"
        f"dynamoDBEndpoint = {moto_endpoint}\nunitsOfWork = true\nlogTableName = {name}\n"
    )
    store = DynamoDBStore(dynamodb, name)
    settings = LogSettings(table=name, owner="w", enabled=True, put_interval=0, poll=0.02)
    async with LogOwner.open(store, settings, UowSettings()) as owner:
        units = [fragment(uow, [1], count=1) for uow in ("done", "bad", "waiting")]
        await owner.append("shard-0", Position(1), Position(1), [*units, fragment("fresh", [9], count=1)])
        await owner.append("shard-1", Position(1), Position(1), [fragment("half", [5, 6], count=3, number=17)])
        outcomes = StatusMeta(
            (
                Outcome(0, UnitStatus.COMMITTED, 1),
                Outcome(1, UnitStatus.FAILED, 0, 'violates check "positive" [23514]'),
                Outcome(2, UnitStatus.BLOCKED, None, "waits for 1"),
            )
        )
        apply = await asyncio.to_thread(mount, store, outcomes_partition("0"), "apply", 5.0)
        batch = Batch(apply.first_id, apply.generation, 0, (Entry(EntryKind.STATUS, outcomes),))
        assert store.put_batch(outcomes_partition("0"), batch, "n") is None
        async with asyncio.timeout(LIMIT):
            while owner.state.through < 0:  # noqa: ASYNC110 - the owner takes the outcomes over on its own
                await asyncio.sleep(0.01)
        yield World(properties, name, store, owner)


async def test_show_has_the_white_papers_columns(world: World) -> None:
    rows = await world.rows()
    assert [(row["id"], row["uow"], row["status"]) for row in rows] == [
        (0, "done", "committed"),
        (1, "bad", "failed"),
        (2, "waiting", "blocked"),
        (3, "fresh", "in progress"),
        (None, "half", "collecting"),
    ]
    assert [row["conflict"] for row in rows] == [None, 0, 1, None, None]
    assert (rows[0]["instance"], rows[0]["queue"], rows[0]["signature"]) == (1, ["shard-0"], ["t(1)"])
    assert (rows[4]["trans_in"], rows[4]["trans_out"], rows[4]["number"]) == (3, 2, 17)
    assert rows[1]["cause"] == 'violates check "positive" [23514]'


async def test_show_prints_a_table(world: World) -> None:
    status, output, _ = await world.kainite("log", "show")
    assert status == 0
    for heading in (
        "Conflict",
        "ID",
        "UofW",
        "Queue ID",
        "ETL JI",
        "Signature",
        "Trans ID In",
        "Trans ID Out",
        "Status",
    ):
        assert heading in output
    assert 'violates check "positive" [23514]' in output
    assert "\x1b[" not in output, "colours only on a terminal"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--status", "failed", "--status", "blocked"], ["bad", "waiting"]),
        (["--uow", "fresh"], ["fresh"]),
        (["--table", "t", "--limit", "2"], ["fresh", "half"]),
        (["--table", "elsewhere"], []),
    ],
)
async def test_show_filters(world: World, options: list[str], expected: list[str]) -> None:
    assert [row["uow"] for row in await world.rows(*options)] == expected


async def test_retry(world: World) -> None:
    status, output, _ = await world.kainite("uow", "retry", "bad")
    assert (status, output) == (0, "unit bad will be applied again\n")
    assert [row["status"] for row in await world.rows("--uow", "bad")] == ["in progress"]
    status, _, errors = await world.kainite("uow", "discard", "bad", "--yes")
    assert (status, errors) == (1, "kainite: unit bad is in progress, not failed\n")


async def test_discard(world: World) -> None:
    status, _, errors = await world.kainite("uow", "discard", "waiting", "--yes")
    assert (status, errors) == (1, "kainite: unit waiting is blocked, not failed: waits for 1; resolve that one\n")
    status, output, _ = await world.kainite("uow", "discard", "bad", "--yes")
    assert (status, output) == (0, "unit bad is discarded\n")


async def test_without_a_daemon_the_request_says_so(world: World) -> None:
    elsewhere = world.properties.with_name("elsewhere.properties")
    elsewhere.write_text(f"{world.properties.read_text()}logPartition = 7\n")
    lonely = World(elsewhere, world.table, world.store, world.owner)
    status, _, errors = await lonely.kainite("uow", "retry", "bad", "--timeout", "0.2")
    assert status == 1
    assert "is a daemon running" in errors


async def test_without_a_log_table_the_name_and_what_makes_it_are_told(world: World) -> None:
    world.properties.write_text(world.properties.read_text().replace(world.table, "no-such-log"))

    for arguments in (("log", "show"), ("uow", "retry", "bad")):
        status, _, errors = await world.kainite(*arguments)

        assert status == 1
        assert errors.startswith("kainite: there is no log table 'no-such-log': ")
        assert "unitsOfWork" in errors


async def test_who_says_which_units_touch_a_row(world: World) -> None:
    status, output, errors = await world.kainite("log", "who", "t", "id=1", "--json")
    assert status == 0, errors
    assert output == ""  # the fragments of this log write plain numbers, not the signatures of rows
    status, output, _ = await world.kainite("log", "who", "t", "id=1")
    assert output == "no unit in progress touches this row\n"
    status, _, errors = await world.kainite("log", "who", "t", "id")
    assert (status, "'id' is not COLUMN=VALUE" in errors) == (2, True)
