"""What is decided becomes durable, whatever the store does; a decision that breaks ends the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kainite.base.errors import LogError, LogFencedError, LogRequestError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    Batch,
    Entry,
    EntryKind,
    StatusMeta,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.mount import mount
from kainite.settings import LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from support.faulty_store import FaultyStore
from support.log_builders import fragment
from support.next_append import append_next
from support.owned_log import owned_log, units_of
from support.waiting import until

SETTINGS = LogSettings(
    table="t", owner="a", enabled=True, lease=2.0, heartbeat=0.05, put_interval=0.0, poll=0.02, queue_bytes=1 << 20
)
UOW = UowSettings()
P = SETTINGS.partition
LIMIT = 10.0


def at(sequence: int) -> Position:
    return Position(sequence)


async def test_many_appends_at_once_share_batches(faulty: FaultyStore) -> None:
    async with owned_log(faulty, SETTINGS, UOW) as log:
        appends = (log.append(f"s{n}", at(1), at(1), [fragment(f"T-{n}", [n], count=1)]) for n in range(100))
        await asyncio.gather(*appends)
    assert sorted(units_of(faulty)) == sorted(f"T-{n}" for n in range(100))
    assert faulty.batches < 10


async def test_an_append_waits_while_the_queue_is_full(faulty: FaultyStore) -> None:
    small = replace(SETTINGS, queue_bytes=500)
    async with owned_log(faulty, small, UOW) as log:
        faulty.gate.clear()
        appends = [asyncio.create_task(log.append(f"s{n}", at(1), at(1), [])) for n in range(20)]
        await until(lambda: faulty.waiting == 1 and len(log.state.positions) > 1)
        assert len(log.state.positions) == 3  # of about 200 bytes each: the third begins below the bound
        faulty.gate.set()
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*appends)
        assert len(log.state.positions) == 20


async def test_a_store_that_does_not_answer_is_asked_again(faulty: FaultyStore) -> None:
    async with owned_log(faulty, SETTINGS, UOW) as log:
        faulty.fail_before = 2
        await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
    assert units_of(faulty) == ["T"]


async def test_a_lost_reply_doubles_nothing(faulty: FaultyStore) -> None:
    async with owned_log(faulty, SETTINGS, UOW) as log:
        faulty.fail_after = 3
        for n in range(1, 4):
            await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
    assert units_of(faulty) == ["T-1", "T-2", "T-3"]


async def test_closing_leaves_what_was_not_acknowledged(faulty: FaultyStore) -> None:
    async with owned_log(faulty, SETTINGS, UOW) as log:
        faulty.fail_before = 1000
        append = asyncio.create_task(log.append("s0", at(1), at(1), []))
        await until(lambda: faulty.fail_before < 1000)
    with pytest.raises(LogUnavailableError, match="has stopped"):
        await append


async def test_a_full_queue_lets_nobody_wait_for_an_owner_that_has_failed(faulty: FaultyStore) -> None:
    async with owned_log(faulty, replace(SETTINGS, queue_bytes=1), UOW) as log:
        faulty.gate.clear()
        appends = [asyncio.create_task(log.append(f"s{n}", at(1), at(1), [])) for n in range(3)]
        mount(faulty, P, SETTINGS.owner, 2.0)
        async with asyncio.timeout(LIMIT):
            results = await asyncio.gather(*appends, return_exceptions=True)
        assert [type(result) for result in results] == [LogFencedError] * 3
        faulty.gate.set()


async def test_a_lease_that_ran_out_is_renewed_however_often_the_store_must_be_asked(faulty: FaultyStore) -> None:
    now = [0.0]
    async with owned_log(faulty, replace(SETTINGS, heartbeat=99), UOW, clock=lambda: now[0]) as log:
        now[0] = 100.0
        faulty.fail_swaps = 2
        await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
    assert units_of(faulty) == ["T"]


async def test_an_error_that_nobody_foresaw_ends_the_owner(faulty: FaultyStore) -> None:
    opened = owned_log(faulty, SETTINGS, UOW)
    log = await opened.__aenter__()
    faulty.broken = True
    async with asyncio.timeout(LIMIT):
        assert "ZeroDivisionError" in str(await log.failed())
    with pytest.raises(ZeroDivisionError):
        await opened.__aexit__(None, None, None)


async def test_a_decision_that_breaks_after_it_has_folded_an_entry_ends_the_owner(store: LogStore) -> None:
    def broken(state: FoldedLog) -> Sequence[Entry]:
        Journal(state, 0).write(EntryKind.STATUS, StatusMeta())
        raise ZeroDivisionError

    async with owned_log(store, SETTINGS, UOW) as log, asyncio.timeout(LIMIT):
        with pytest.raises(ZeroDivisionError):
            await log.write(broken)
        with pytest.raises(LogError, match="ZeroDivisionError"):
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
        assert "ZeroDivisionError" in str(await log.failed())
    assert units_of(store) == []


async def test_a_decision_that_is_refused_before_it_folds_anything_ends_nothing(store: LogStore) -> None:
    def refused(state: FoldedLog) -> Sequence[Entry]:
        raise LogRequestError("no")

    async with owned_log(store, SETTINGS, UOW) as log, asyncio.timeout(LIMIT):
        with pytest.raises(LogRequestError, match="no"):
            await log.write(refused)
        await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
    assert units_of(store) == ["T"]


async def test_a_batch_that_lands_in_a_truncated_place_is_not_acknowledged(faulty: FaultyStore) -> None:
    """Covers the one case that the store's condition cannot see: only the lease does."""
    now = [0.0]
    async with owned_log(faulty, replace(SETTINGS, heartbeat=99), UOW, clock=lambda: now[0]) as old:
        await append_next(old, "s0", at(1), at(1), [fragment("T-1", [1], count=1)])
        faulty.gate.clear()
        late = asyncio.create_task(old.append("s0", at(2), at(2), [fragment("late", [2], count=1)], at(1)))
        await until(lambda: faulty.waiting == 1)
        newer = mount(faulty, P, SETTINGS.owner, 2.0)
        for first in (2, 3):
            batch = Batch(first, newer.generation, 0, (Entry(EntryKind.STATUS, StatusMeta()),))
            assert MemoryStore.put_batch(faulty, P, batch, f"n{first}") is None
        newer.renew(low_water_mark=3)
        assert faulty.truncate(P, 3) == 2
        now[0] = 100.0
        faulty.gate.set()
        with pytest.raises(LogFencedError):
            await late
    assert "late" not in units_of(faulty, first_id=3)
