"""The overview and its figures."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from kainite.base.clock import epoch_ms
from support.console_world import made_log, served_console
from support.log_cli import LogWorld


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
    store, file = await asyncio.to_thread(made_log, dynamodb, moto_endpoint, tmp_path)
    for age_ms in (120_000, 0):
        store.put_request("0", {"action": "pause", "by": "ada", "at": str(epoch_ms() - age_ms)})
    async with served_console(file) as console:
        page = (await console.ask("/app/")).text
        assert re.search(r"2 requests wait for the owner, the oldest for \d+ min", page)
        assert "is one at work?" in page


async def test_without_requests_it_says_so(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        assert "No request waits for the owner." in (await console.ask("/app/")).text
