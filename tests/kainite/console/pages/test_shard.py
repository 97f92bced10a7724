"""One shard's page."""

from __future__ import annotations

from support.console_world import served_console
from support.log_cli import LogWorld


async def test_a_shard_that_is_not_there_is_told(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        answer = await console.ask("/app/shard?shard=nowhere")
        assert (answer.status, "there is no shard &#39;nowhere&#39;" in answer.text) == (404, True)
