"""The data of transactions is read on a connection of its own; where that is cut, whoever waits hears of it."""

from __future__ import annotations

import asyncio

from support.application_world import Ledger, Proxy, program, raw_client, world


async def test_a_cut_while_a_transaction_is_read_does_not_hang() -> None:
    async with world() as found, Proxy(found.server.address).running() as proxy:
        ledger = Ledger()
        async with raw_client(found) as raw:
            raw.append(-1, data=b"x" * 1_000_000)
            assert await raw.flush() == ([], 0)
        proxy.chunk, proxy.delay = 10_000, 0.02
        async with program(found, ledger, proxy) as log:
            for _ in range(5):
                await asyncio.sleep(0.1)
                proxy.cut()
            proxy.chunk, proxy.delay = 1 << 16, 0.0
            await log.applied(0)
        assert ledger.entries == [b"x" * 1_000_000]
