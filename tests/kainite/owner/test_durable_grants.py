"""Grants on durable entries only: positions, acknowledgements and answers to requests.

Each test keeps batches from reaching the store, as a put that hangs does, and compares what the owner says with what
a fresh owner would find there after a SIGKILL at that moment.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.errors import LogUnavailableError
from kainite.base.position import Position
from kainite.log.contract import Slot
from kainite.log.format.entry import Batch, Entry, Outcome, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.owner.owner import LogOwner
from kainite.settings import LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from support.log_builders import fragment, needed
from support.next_append import append_next
from support.outcomes_log import OutcomesLog
from support.owned_log import owned_log
from support.waiting import until

SETTINGS = LogSettings(
    table="t", owner="a", enabled=True, lease=60.0, heartbeat=20.0, put_interval=0.0, poll=0.01, queue_bytes=1 << 20
)

UOW = UowSettings()
P = SETTINGS.partition
LIMIT = 10.0


class GatedStore(MemoryStore):
    """A store whose puts to the log hang until :meth:`let` lets some of them through."""

    def __init__(self) -> None:
        super().__init__()
        self._tickets = threading.Semaphore(0)
        self.open = False
        self.hanging = 0

    def let(self, puts: int = 1) -> None:
        self._tickets.release(puts)

    def let_all(self) -> None:
        self.open = True
        self.let(1000)

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        if partition == P and not self.open:
            self.hanging += 1
            assert self._tickets.acquire(timeout=LIMIT)
            self.hanging -= 1
        return super().put_batch(partition, batch, nonce)

    def durable(self, shard: str) -> Position | None:
        return load_state(self, P).positions.get(shard)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_the_position_of_an_append_that_hangs_is_not_told_before_it_is_durable() -> None:
    """Asks as the consumer of a lease that is back does: a checkpoint there, then a SIGKILL, would lose the unit."""
    store = GatedStore()
    async with owned_log(store, SETTINGS, UOW) as log:
        hanging = asyncio.create_task(log.append("s0", Position(1), Position(5), [fragment("T", [1], count=1)]))
        await until(lambda: store.hanging == 1)
        hanging.cancel()  # the lease is lost: the consumer is ended
        position = asyncio.create_task(log.position("s0"))  # the lease is back
        await turns()
        assert not position.done(), f"granted {position.result()}, and the store has {store.durable('s0')}"
        assert await log.position("s1") is None, "another shard does not wait"
        store.let_all()
        async with asyncio.timeout(LIMIT):
            assert await position == Position(5) == store.durable("s0")


async def test_whoever_asks_an_owner_that_has_failed_is_told_so() -> None:
    store = GatedStore()
    async with owned_log(store, replace(SETTINGS, poll=60.0), UOW) as log:
        hanging = asyncio.create_task(log.append("s0", Position(1), Position(1), []))
        await until(lambda: store.hanging == 1)
    with pytest.raises(LogUnavailableError, match="has stopped"):
        await hanging
    with pytest.raises(LogUnavailableError, match="has stopped"):
        await asyncio.wait_for(log.position("s0"), LIMIT)
    store.let_all()


async def test_a_new_position_is_told_when_the_first_of_several_appends_is_durable() -> None:
    store = GatedStore()
    async with owned_log(store, replace(SETTINGS, batch_bytes=1), UOW) as log:
        behind = {1: None, 2: Position(1), 3: Position(2)}
        appends = [
            asyncio.create_task(log.append("s0", Position(n), Position(n), [], after)) for n, after in behind.items()
        ]
        await until(lambda: store.hanging == 1)
        position = asyncio.create_task(log.position("s0"))
        store.let(2)
        await until(lambda: store.durable("s0") == Position(2))
        assert not position.done()
        store.let_all()
        async with asyncio.timeout(LIMIT):
            assert await position == Position(3)
            await asyncio.gather(*appends)


async def test_an_answer_that_appends_nothing_waits_for_what_it_was_decided_on() -> None:
    store = GatedStore()
    async with owned_log(store, replace(SETTINGS, poll=60.0), UOW) as log:
        append = asyncio.create_task(log.append("s0", Position(1), Position(1), [fragment("T", [1, 2], count=1)]))
        await until(lambda: store.hanging == 1)
        seen: list[str] = []

        def decide(state: FoldedLog) -> tuple[Entry, ...]:
            seen.extend(unit.uow for unit in state.units.values())
            return ()

        deciding = asyncio.create_task(log.write(decide))
        await turns()
        assert seen == ["T"]
        assert not deciding.done()
        store.let_all()
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(append, deciding)


async def test_truncation_keeps_what_the_durable_state_needs() -> None:
    """Keeps a unit's data in the log while its outcomes are folded and not durable."""
    store = GatedStore()
    store.open = True
    lows: list[tuple[int, int]] = []
    truncate = store.truncate

    def noted(partition: str, below: int) -> int:
        lows.append((below, needed(load_state(store, P))))
        return truncate(partition, below)

    store.truncate = noted  # type: ignore[method-assign]
    apply = OutcomesLog(store)
    async with owned_log(store, replace(SETTINGS, snapshot_entries=5), UOW) as log:
        n = 0
        while len(lows) < 3:
            n += 1
            tid = log.state.next_id
            await append_next(log, "s0", Position(n), Position(n), [fragment(f"T-{n}", [n], count=1)])
            apply.report(Outcome(tid, UnitStatus.COMMITTED, 0))
            await asyncio.sleep(0.001)
    assert all(low <= needed for low, needed in lows)


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "again", "position", "cancel", "let", "decide"]), st.integers(0, 2)),
    max_size=30,
)


class Grants:
    """Runs steps against an owner whose puts hang, and notes each grant that the store does not bear out."""

    def __init__(self, store: GatedStore, log: LogOwner) -> None:
        self.store, self.log = store, log
        self.last = dict.fromkeys(range(3), 0)
        self.tasks: list[asyncio.Task[None]] = []
        self.early: list[str] = []

    async def take(self, step: str, shard: int) -> None:
        match step:
            case "append":
                self.last[shard] += 1
                self._start(self._append(shard, self.last[shard]))
            case "again" if self.last[shard]:
                self._start(self._append(shard, self.last[shard]))
            case "position":
                self._start(self._position(shard))
            case "decide":
                self._start(self._decide())
            case "cancel" if self.tasks:
                self.tasks[shard % len(self.tasks)].cancel()
            case "let":
                self.store.let()
        await turns(5)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def _append(self, shard: int, number: int) -> None:
        at = Position(number)
        await append_next(self.log, f"s{shard}", at, at, [fragment(f"T-{shard}-{number}", [number], count=1)])
        self._check(lambda: self._reached(shard) >= number, f"append {number} of {shard}")

    async def _position(self, shard: int) -> None:
        position = await self.log.position(f"s{shard}")
        self._check(lambda: position is None or self._reached(shard) >= position.sequence, f"position of {shard}")

    async def _decide(self) -> None:
        seen = 0

        def decide(state: FoldedLog) -> tuple[Entry, ...]:
            nonlocal seen
            seen = state.next_id
            return ()

        await self.log.write(decide)
        self._check(lambda: load_state(self.store, P).next_id >= seen, f"decision on {seen} entries")

    def _reached(self, shard: int) -> int:
        position = self.store.durable(f"s{shard}")
        return position.sequence if position else 0

    def _check(self, holds: Callable[[], bool], what: str) -> None:
        if not holds():
            self.early.append(what)


async def _play(steps: list[tuple[str, int]], batch_bytes: int) -> None:
    store = GatedStore()
    quiet = replace(SETTINGS, poll=60.0, batch_bytes=batch_bytes)
    async with owned_log(store, quiet, UOW) as log:
        grants = Grants(store, log)
        for step, shard in steps:
            await grants.take(step, shard)
        store.let_all()
        async with asyncio.timeout(LIMIT):
            results = await asyncio.gather(*grants.tasks, return_exceptions=True)
    assert grants.early == []
    assert [result for result in results if isinstance(result, Exception)] == []


@given(STEPS, st.sampled_from([1, 1 << 18]))
@settings(max_examples=60, deadline=None)
def test_no_grant_precedes_durability(steps: list[tuple[str, int]], batch_bytes: int) -> None:
    asyncio.run(_play(steps, batch_bytes))
