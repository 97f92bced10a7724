"""An owner is opened on a mount, and is the only one: an older one is told."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest

from kainite.base.errors import LogFencedError, LogHeldError, LogRequestError
from kainite.base.position import Position
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    TARGETS,
    ControlMeta,
    EntryKind,
)
from kainite.log.state.loading import load_state
from kainite.owner.mount import mount
from kainite.settings import LogSettings, UowSettings
from kainite.settings.assignment import TableAssignment
from support.log_builders import fragment
from support.log_members import members
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


def mount_between_heartbeats(store: LogStore) -> None:
    """Mounts under the owner's name; tries again when a heartbeat came between the read and the claim."""
    while True:
        with contextlib.suppress(LogHeldError):
            mount(store, P, SETTINGS.owner, 2.0)
            return


async def test_the_older_is_fenced_and_says_so(store: LogStore) -> None:
    async with owned_log(store, replace(SETTINGS, heartbeat=99), UOW) as old:
        await append_next(old, "s0", at(1), at(1), [fragment("T-1", [1], count=1)])
        await asyncio.to_thread(mount, store, P, SETTINGS.owner, 2.0)
        with pytest.raises(LogFencedError, match="a daemon goes on as its client"):
            await append_next(old, "s0", at(2), at(2), [fragment("T-2", [2], count=1)])
        assert isinstance(await old.failed(), LogFencedError)
        with pytest.raises(LogFencedError):
            await append_next(old, "s0", at(3), at(3), [])
    assert units_of(store) == ["T-1"]


async def test_an_idle_owner_notices_by_its_heartbeat(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as old:
        await asyncio.to_thread(mount_between_heartbeats, store)
        async with asyncio.timeout(LIMIT):
            assert isinstance(await old.failed(), LogFencedError)


async def test_one_worker_id_on_two_hosts_has_one_owner_and_an_error_in_the_log(
    store: LogStore, caplog: pytest.LogCaptureFixture
) -> None:
    async with owned_log(store, SETTINGS, UOW, process=ProcessIdentity("one")) as log, members(store) as others:
        await others.join(SETTINGS.owner, reached=False)
        await until(lambda: "another daemon runs under this worker id" in caplog.text)
        for n in range(1, 4):
            await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
        with pytest.raises(LogHeldError, match="under our own name"):
            mount(store, P, SETTINGS.owner, 2.0, process=ProcessIdentity("two"))
    assert units_of(store) == ["T-1", "T-2", "T-3"]


async def test_a_released_log_is_taken_at_once(store: LogStore) -> None:
    async with owned_log(store, replace(SETTINGS, lease=1000), UOW):
        pass
    async with asyncio.timeout(LIMIT), owned_log(store, replace(SETTINGS, owner="b"), UOW) as log:
        assert log.generation == 2


async def test_the_targets_of_the_settings_are_in_the_log_before_an_append(store: LogStore) -> None:
    targets = TableAssignment((("shop", ()), ("crm", ("contact",))))
    for wanted in (targets, targets):  # the second owner's settings say what the log has
        async with owned_log(store, replace(SETTINGS, targets=wanted), UOW) as log:
            assert log.state.targets.assignment == wanted
            assert load_state(store, P).targets.assignment == wanted
    noted = [entry for batch in store.read_batches(P, 0, strong=True) for entry in batch.entries]
    assert [(entry.kind, entry.meta) for entry in noted] == [
        (EntryKind.CONTROL, ControlMeta(TARGETS, key=targets.as_text()))
    ]


async def test_targets_that_a_unit_waits_for_must_stay(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
    with pytest.raises(LogRequestError, match="start with the former settings"):
        async with owned_log(store, replace(SETTINGS, targets=TableAssignment((("shop", ()),))), UOW):
            pass
    async with owned_log(store, SETTINGS, UOW) as log:  # nothing was noted, and the partition is free
        assert not log.state.targets.assignment
