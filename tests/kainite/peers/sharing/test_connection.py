"""Connections that break: through a proxy that cuts, holds back and throttles, each append is in the log once."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogRequestError
from kainite.base.position import Position
from kainite.peers.access import Access
from kainite.peers.connection.core import Limits
from kainite.peers.sharing import connection
from kainite.peers.sharing.shared_log import SharedLog
from support.application_world import Proxy
from support.log_builders import fragment
from support.log_members import LIMIT, members, units_of
from support.next_append import append_next
from support.ports import free_port
from support.waiting import until

APPENDS = 40


async def append_all(log: SharedLog, shard: str) -> None:
    for number in range(1, APPENDS + 1):
        await append_next(
            log, shard, Position(number), Position(number), [fragment(f"{shard}.{number}", [number], count=1)]
        )


@pytest.mark.parametrize(("delay", "chunk", "cuts"), [(0.0, 1 << 16, 30), (0.02, 1 << 16, 8), (0.0, 7, 8)])
async def test_each_append_is_in_the_log_once_whatever_the_network_does(delay: float, chunk: int, cuts: int) -> None:
    place, rng = Address("127.0.0.1", free_port()), Random(cuts)
    proxy = Proxy(place)
    proxy.delay, proxy.chunk = delay, chunk
    async with proxy.running(), members() as all_:
        await all_.join("a", access=Access(place, advertise=proxy.address))
        b = await all_.join("b")
        appending = [asyncio.create_task(append_all(b, f"s{shard}")) for shard in range(3)]
        for _ in range(cuts):
            await asyncio.wait(appending, timeout=rng.uniform(0.0, 0.1))
            proxy.cut()
        await asyncio.wait_for(asyncio.gather(*appending), LIMIT)
        expected = [f"s{shard}.{number}" for shard in range(3) for number in range(1, APPENDS + 1)]
        assert sorted(units_of(all_.store)) == sorted(expected)
        assert b.owner is None, "a cut alone is no reason to take the log over"


async def test_an_owner_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OWNER_LIMITS", Limits(silent=0.3))
    place = Address("127.0.0.1", free_port())
    proxy = Proxy(place)
    async with proxy.running(), members() as all_:
        await all_.join("a", access=Access(place, advertise=proxy.address))
        b = await all_.join("b")
        proxy.delay = 1_000.0
        await until(lambda: not b.is_reached)
        proxy.cut()
        proxy.delay = 0.0
        await asyncio.wait_for(b.reached(), LIMIT)


async def test_an_append_that_is_too_long_for_a_frame_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_APPEND", 1000)
    async with members() as all_:
        await all_.join("a")
        b = await all_.join("b")
        other = asyncio.create_task(append_all(b, "s1"))
        with pytest.raises(LogRequestError, match=r"shard s0: .* of at most 1000: too long for one append"):
            await append_next(b, "s0", Position(1), Position(1), [fragment("T", range(1000), count=1000)])
        await asyncio.wait_for(other, LIMIT)
        assert len(units_of(all_.store)) == APPENDS
