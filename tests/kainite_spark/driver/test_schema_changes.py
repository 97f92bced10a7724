"""The target's tables change while the pipeline runs: each line of the table in docs/operations.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import TargetBusyError, TargetUnavailableError
from kainite.base.retry import Backoff
from kainite_spark.driver import patience
from support.schema_world import SchemaWorld, item
from support.stores import Database
from support.waiting import until

NEVER = 1e6


@pytest.fixture
def world(tmp_path: Path) -> SchemaWorld:
    return SchemaWorld(Database(f"sqlite:///{tmp_path}/target.db"))


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACKOFF", Backoff.doubling(0.001, 10.0))


class TestANewNullableColumn:
    async def test_of_the_target_first_passes_by_itself(self, world: SchemaWorld) -> None:
        async with world.daemon():
            await world.emit("before", item(1, v=1))
            await world.apply()
            world.database.run("ALTER TABLE item ADD COLUMN colour text")
            await world.emit("after", item(1, v=2, colour="red"))
            await world.emit("old form", item(2, v=3))
            await world.apply()
        assert set(world.statuses().values()) == {"committed"}
        assert world.items("id, v, colour") == [(1, 2, "red"), (2, 3, None)]

    async def test_fails_no_unit_where_the_target_is_away_or_busy_when_its_tables_are_looked_at(
        self, world: SchemaWorld
    ) -> None:
        async with world.daemon():
            world.database.run("ALTER TABLE item ADD COLUMN colour text")
            await world.emit("new form", item(1, v=2, colour="red"))
            world.trouble = [TargetUnavailableError("away"), TargetBusyError("other logs take tables")]
            await world.apply()
        assert world.statuses() == {"new form": "committed"}

    async def test_of_the_source_first_fails_no_unit_for_good_and_loses_no_delta(self, world: SchemaWorld) -> None:
        async with world.daemon():
            await world.emit("early", item(1, v=1, colour="red"))
            await world.emit("behind", item(1, v=2))
            await world.emit("beside", item(2, v=3))
            await world.apply()
            assert world.statuses() == {"early": "failed", "behind": "blocked", "beside": "committed"}
            assert world.rows()["early"].cause == "table 'item' has no column 'colour', which 'row' names"
            world.database.run("ALTER TABLE item ADD COLUMN colour text")
            await until(lambda: world.statuses()["early"] == "in progress")
            await world.apply()
        assert set(world.statuses().values()) == {"committed"}
        assert world.items("id, v, colour") == [(1, 2, "red"), (2, 3, None)]

    async def test_is_found_after_both_were_restarted(self, world: SchemaWorld) -> None:
        async with world.daemon(every=NEVER):
            await world.emit("early", item(1, v=1, colour="red"))
            await world.apply()
        world.database.run("ALTER TABLE item ADD COLUMN colour text")
        async with world.daemon(every=NEVER):
            await until(lambda: world.statuses()["early"] == "in progress")
            await world.apply()
        assert world.statuses() == {"early": "committed"}

    async def test_lets_a_retry_apply_the_unit_at_its_own_place(self, world: SchemaWorld) -> None:
        async with world.daemon(every=NEVER):
            await world.emit("early", item(1, v=1), item(3, v=1, colour="red"))
            await world.emit("behind", item(1, v=2))
            await world.apply()
            answer = await world.ask("retry", "early")
            assert answer.startswith("refused: unit early does not fit the target's catalogue (table 'item' has no")
            assert world.statuses() == {"early": "failed", "behind": "blocked"}
            world.database.run("ALTER TABLE item ADD COLUMN colour text")
            assert await world.ask("retry", "early") == "ok: unit early will be applied again"
            await world.apply()
        assert set(world.statuses().values()) == {"committed"}
        assert world.items() == [(1, 2), (3, 1)]


class TestANewTable:
    async def test_of_the_target_first_passes_by_itself(self, world: SchemaWorld) -> None:
        async with world.daemon():
            await world.emit("before", item(1, v=1))
            await world.apply()
            world.database.run("CREATE TABLE fresh (id bigint PRIMARY KEY, v bigint)")
            await world.emit("after", {**item(7, v=1), "table": "fresh"})
            await world.apply()
        assert set(world.statuses().values()) == {"committed"}
        assert world.database.rows("SELECT * FROM fresh") == [(7, 1)]

    async def test_of_the_source_first_holds_back_what_touches_it_and_nothing_else(self, world: SchemaWorld) -> None:
        fresh = [{**item(key, v=1), "table": "fresh"} for key in (1, 2)]
        async with world.daemon():
            await world.emit("first", fresh[0])
            await world.emit("second", fresh[1])
            await world.emit("beside", item(1, v=1))
            await world.apply()
            assert world.statuses() == {"first": "failed", "second": "failed", "beside": "committed"}
            world.database.run("CREATE TABLE fresh (id bigint PRIMARY KEY, v bigint)")
            await until(lambda: "failed" not in world.statuses().values())
            await world.apply()
        assert set(world.statuses().values()) == {"committed"}
        assert world.database.rows("SELECT * FROM fresh ORDER BY id") == [(1, 1), (2, 1)]

    async def test_of_the_target_first_is_no_reason_to_hold_back_what_touches_other_tables(
        self, world: SchemaWorld
    ) -> None:
        async with world.daemon():
            await world.emit("bad", item(1, v=-1))
            await world.apply()
            world.database.run("CREATE TABLE fresh (id bigint PRIMARY KEY, v bigint)")
            await world.emit("new", {**item(7, v=1), "table": "fresh"}, item(2, v=1))
            await world.apply()
        assert world.statuses() == {"bad": "failed", "new": "committed"}


async def test_a_wider_type_passes_by_itself(postgres: str) -> None:
    world = SchemaWorld(Database(postgres))
    async with world.daemon():
        await world.emit("before", item(1, name="short"))
        await world.apply()
        world.database.run("ALTER TABLE item ALTER COLUMN name TYPE varchar(20)")
        await world.emit("after", item(1, name="no longer short"))
        await world.apply()
    assert set(world.statuses().values()) == {"committed"}
    assert world.items("id, name") == [(1, "no longer short")]


STOPS = {
    "a new unique key": ("CREATE UNIQUE INDEX item_name ON item (name)", item(9, v=1, name="x")),
    "a new foreign key, which SQLite has in a new table": (
        "CREATE TABLE child (id bigint PRIMARY KEY, item_id bigint REFERENCES item)",
        {"table": "child", "op": "upsert", "key": {"id": 1}, "row": {"item_id": 5}},
    ),
}


@pytest.mark.parametrize(("change", "later"), STOPS.values(), ids=STOPS)
async def test_what_changes_signatures_lets_no_unit_pass_a_failed_one_that_was_signed_before(
    world: SchemaWorld, change: str, later: dict[str, object]
) -> None:
    async with world.daemon():
        await world.emit("item", item(5, v=1, name="y"))
        await world.emit("bad", item(1, v=-1, name="x"))
        await world.apply()
        world.database.run(f"{change}; ALTER TABLE other ADD COLUMN w bigint")
        # The daemon reads the catalogue again for what it does not know.
        await world.emit("unrelated", {**item(1, w=1), "table": "other"})
        await world.emit("later", later)
        await world.apply()
        assert world.statuses() == {
            "item": "committed", "bad": "failed", "unrelated": "committed", "later": "blocked"
        }  # fmt: skip
        await world.ask("discard", "bad")
        await world.apply()
    assert world.statuses()["later"] == "committed"


async def test_units_that_wait_while_signatures_change_are_applied_in_order(world: SchemaWorld) -> None:
    async with world.daemon():
        await world.emit("old", item(1, v=1, name="x"))
        await world.emit("gives up", item(1, v=1, name="y"))
        world.database.run("CREATE UNIQUE INDEX item_name ON item (name); ALTER TABLE item ADD COLUMN w bigint")
        await world.emit("takes", item(2, v=1, name="x", w=1))
        await world.apply()
    assert world.micro_batches() == 3, "one for the two units of the old scheme, two tries of the other one"
    assert set(world.statuses().values()) == {"committed"}
    assert world.items("id, name, w") == [(1, "y", None), (2, "x", 1)]


async def test_a_renamed_column_needs_a_stop(world: SchemaWorld) -> None:
    async with world.daemon():
        world.database.run("ALTER TABLE item RENAME COLUMN name TO title; ALTER TABLE other ADD COLUMN w bigint")
        await world.emit("unrelated", {**item(1, w=1), "table": "other"})
        await world.emit("old name", item(1, v=1, name="x"))
        await world.emit("new name", item(2, v=1, title="x"))
        await world.apply()
        assert world.statuses() == {"unrelated": "committed", "old name": "failed", "new name": "committed"}
        assert (await world.ask("retry", "old name")).startswith("refused: unit old name does not fit")
        world.database.run("ALTER TABLE item ADD COLUMN name text")
        await until(lambda: world.statuses()["old name"] == "in progress")
        await world.apply()
    assert set(world.statuses().values()) == {"committed"}


async def test_a_table_that_leaves_target_schemas_and_comes_back_keeps_its_units(world: SchemaWorld) -> None:
    async with world.daemon():
        await world.emit("before", item(1, v=1))
    world.missing = {"item"}
    async with world.daemon(every=NEVER):
        await world.emit("meanwhile", item(1, v=2))
    world.missing = set()
    async with world.daemon():
        await until(lambda: world.statuses()["meanwhile"] == "in progress")
        await world.apply()
    assert set(world.statuses().values()) == {"committed"}
    assert world.items() == [(1, 2)]
