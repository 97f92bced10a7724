"""The page of shards, daemons and duties."""

from __future__ import annotations

from support.console_world import served_console
from support.log_cli import LogWorld


async def test_without_leases_it_says_so(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        page = (await console.ask("/app/shards")).text
        assert "No daemon holds a lease." in page
        assert "Move" not in page
