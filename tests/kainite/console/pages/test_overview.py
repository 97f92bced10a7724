"""The overview and its figures."""

from __future__ import annotations

import json

from support.console_world import served_console
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
