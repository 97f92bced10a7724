"""The page of the apply job."""

from __future__ import annotations

import asyncio

from support.console_world import allow, served_console
from support.log_cli import LogWorld


async def test_units_that_stand_still_say_why(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        page = (await console.ask("/app/apply")).text
        still = page[page.index("Units that stand still") :]
        assert still.index("bad") < still.index("waiting")
        assert "Pause" in page
        assert "Done." in (await console.send("/app/do", {"do": "pause", "sure": "yes", "why": "a repair"})).text
        async with asyncio.timeout(60):
            while "Resume" not in (await console.ask("/app/apply")).text:  # noqa: ASYNC110 - a heartbeat tells
                await asyncio.sleep(0.05)
