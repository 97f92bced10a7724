"""Who holds a shard's lease: what is read, when it is read again, and what waits for it."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import KainiteError, LeaseTableUnavailableError, LogRequestError
from kainite.peers.sharing import lease_holders
from kainite.peers.sharing.lease_holders import KEPT_S, LeaseHolders
from support.waiting import until


class Table:
    """The lease table: who holds each lease, how often each was read, and an error to answer with."""

    def __init__(self, **holders: str) -> None:
        self.holders = holders
        self.reads = 0
        self.error: KainiteError | None = None

    def holder(self, shard: str) -> str | None:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.holders.get(shard)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_holders, "READ_EVERY_S", 0.01)


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead


async def test_a_holder_is_read_once_and_nobody_else_appends() -> None:
    table = Table(s0="a", s1="b")
    holders = LeaseHolders(table.holder, Clock())
    for _ in range(3):
        await holders.check("s0", "a")
    assert table.reads == 1
    for shard, by in (("s1", "b does"), ("s2", "nobody does")):
        with pytest.raises(LogRequestError, match=f"shard {shard}: worker a does not hold its lease, {by}"):
            await holders.check(shard, "a")


async def test_who_takes_a_lease_is_known_at_once_and_who_lost_it_is_refused_from_then_on() -> None:
    table = Table(s0="a")
    holders = LeaseHolders(table.holder, Clock())
    await holders.check("s0", "a")
    table.holders["s0"] = "b"
    await holders.check("s0", "a")  # not known yet: no fence
    await holders.check("s0", "b")
    with pytest.raises(LogRequestError, match="b does"):
        await holders.check("s0", "a")


async def test_a_lease_that_was_read_long_ago_is_read_again() -> None:
    table, clock = Table(s0="a"), Clock()
    holders = LeaseHolders(table.holder, clock)
    await holders.check("s0", "a")
    table.holders["s0"] = "b"
    clock.ahead = KEPT_S + 1
    with pytest.raises(LogRequestError, match="b does"):
        await holders.check("s0", "a")


async def test_a_holder_is_read_anew_before_its_time_is_over() -> None:
    table, clock = Table(s0="a"), Clock()
    holders = LeaseHolders(table.holder, clock)
    await holders.check("s0", "a")
    clock.ahead = KEPT_S / 2 + 1
    assert holders.is_known("s0", "a")
    await until(lambda: table.reads == 2)
    clock.ahead = KEPT_S + 1
    assert holders.is_known("s0", "a")


async def test_while_the_table_does_not_answer_an_append_waits_and_is_not_refused() -> None:
    table = Table(s0="a")
    table.error = LeaseTableUnavailableError("away")
    holders = LeaseHolders(table.holder, Clock())
    checks = [asyncio.create_task(holders.check("s0", "a")) for _ in range(3)]
    await until(lambda: table.reads >= 3)
    assert not any(check.done() for check in checks)
    table.error = None
    await asyncio.gather(*checks)


async def test_what_is_not_known_is_read_for_the_next_time() -> None:
    table = Table(s0="a")
    holders = LeaseHolders(table.holder, Clock())
    assert not holders.is_known("s0", "a")
    await until(lambda: holders.is_known("s0", "a"))
    assert not holders.is_known("s0", "b")


async def test_no_more_leases_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_holders, "MOST_KEPT", 2)
    table = Table(s0="a", s1="a", s2="a")
    holders = LeaseHolders(table.holder, Clock())
    for shard in ("s0", "s1", "s2", "s0"):
        await holders.check(shard, "a")
    assert table.reads == 4
