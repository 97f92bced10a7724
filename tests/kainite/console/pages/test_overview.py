"""The overview and its figures."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from kainite.base.clock import epoch_ms
from kainite.store.dynamodb import DynamoDBStore
from support.console_world import served_console
from support.log_cli import LogWorld
from support.names import unique


async def test_the_verdict_and_the_way_stand_first(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        overview = (await console.ask("/app/")).text
        assert "1 unit failed; the first is bad (id 1)" in overview
        assert "The way of the data" in overview


async def test_charts_and_their_table_have_the_last_hour(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        figures = json.loads((await console.ask("/app/figures.json")).text)
        assert len(figures["at"]) == len(figures["rate"]) == 360
        assert (await console.ask("/app/figures")).text.count("<tr>") == 1 + 12


async def test_requests_that_wait_for_an_owner_stand_on_it(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    name, file = unique("log"), tmp_path / "app.properties"
    file.write_text(
        f"applicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
        f"unitsOfWork = true\nlogTableName = {name}\n"
    )
    store = DynamoDBStore(dynamodb, name)
    await asyncio.to_thread(store.create)
    for age_ms in (120_000, 0):
        store.put_request("0", {"action": "pause", "by": "ada", "at": str(epoch_ms() - age_ms)})
    async with served_console(file) as console:
        page = (await console.ask("/app/")).text
        assert re.search(r"2 requests wait for the owner, the oldest for \d+ min", page)
        assert "is one at work?" in page


async def test_without_requests_it_says_so(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        assert "No request waits for the owner." in (await console.ask("/app/")).text
