"""The page on which checkpoints are reset: what it offers."""

from __future__ import annotations

import asyncio
from typing import Any

from kainite.base.checkpoint import Checkpoint
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from support.console_world import allow, served_console
from support.log_cli import LogWorld
from support.names import unique


async def test_a_sequence_number_is_offered_for_one_shard_alone(log_world: LogWorld, dynamodb: Any) -> None:
    name = unique("app")
    leases = LeaseTable(dynamodb, name)
    await asyncio.to_thread(leases.create)
    for shard in ("shard-a", "shard-b"):
        await asyncio.to_thread(leases.put_new, Lease(shard, checkpoint=Checkpoint("9")))
    file = allow(log_world.properties, consoleOperators="local", streamName="s", tableName=name)
    async with served_console(file) as console:
        every = (await console.ask("/app/reset")).text
        one = (await console.ask("/app/reset?shard=shard-a")).text
        assert ("shard-b" in every, 'value="sequence"' in every) == (True, False)
        assert ("shard-b" in one, 'value="sequence"' in one) == (False, True)
        assert "has no lease" in (await console.ask("/app/reset?shard=nowhere")).text
        refused = await console.send("/app/do", {"do": "reset", "to": "at", "at": "soon", "why": "so"})
        assert (refused.status, "between 1970 and now" in refused.text, 'value="so"' in refused.text) == (
            409,
            True,
            True,
        )
        assert {lease.checkpoint for lease in leases.scan()} == {Checkpoint("9")}
