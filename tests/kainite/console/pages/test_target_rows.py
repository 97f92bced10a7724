"""A unit's deltas beside the target's rows."""

from __future__ import annotations

import psycopg

from support.console_world import allow, served_console
from support.log_cli import LogWorld


async def test_the_row_that_the_target_has_now_stands_beside_the_delta(log_world: LogWorld, postgres: str) -> None:
    with psycopg.connect(postgres) as target:
        target.execute("CREATE TABLE t (id bigint PRIMARY KEY, v bigint)")
        target.execute("INSERT INTO t VALUES (1, 4711)")
    async with served_console(allow(log_world.properties, target=postgres)) as console:
        page = (await console.ask("/app/target-rows?uow=bad")).text
        assert "4711" in page
        assert 'class="changed"' in page


async def test_masked_values_are_not_asked_for(log_world: LogWorld) -> None:
    async with served_console(
        allow(log_world.properties, target="sqlite:///none.db", consoleValues="masked")
    ) as console:
        assert "values are not shown here" in (await console.ask("/app/target-rows?uow=bad")).text
        assert "Beside the target" not in (await console.ask("/app/unit?uow=bad")).text
