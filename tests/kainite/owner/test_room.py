"""Appends wait while the queue or the backlog is full; the owner's own entries wait for the queue alone."""

from __future__ import annotations

import asyncio

import pytest

from kainite.log.format.entry import Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.owner.append_queue import ENTRY_OVERHEAD, AppendQueue
from kainite.owner.room import TELL_S, OwnersRoom
from kainite.settings import LogSettings
from kainite.store.memory import MemoryStore
from kainite.uow.signature import Signatures
from support.log_builders import fragment
from support.main_log import MainLog

SETTINGS = LogSettings("t", "a", enabled=True, backlog_units=1)
STATUS = Entry(EntryKind.STATUS, StatusMeta())


def full_log() -> MainLog:
    """Returns a log with one unit that waits to be applied, which is as many as the bound allows."""
    log = MainLog(MemoryStore(), Signatures(None))
    log.append(fragment("T", [1], count=1))
    return log


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_append_waits_for_the_backlog_and_the_owners_own_entries_do_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, queue, now = full_log(), AppendQueue({}, 1 << 20), [0.0]
    room = OwnersRoom(queue, log.state, SETTINGS, lambda: now[0])
    backlog = room.backlog()
    assert backlog is not None
    assert backlog.units == 1
    waiting = [asyncio.create_task(room.for_an_append()) for _ in range(2)]
    await asyncio.wait_for(queue.room(), 1)
    await turns()
    assert not any(task.done() for task in waiting)
    assert caplog.text.count("backlog is full") == 1, "told once in a while, however many wait"
    now[0] += TELL_S
    waiting.append(asyncio.create_task(room.for_an_append()))
    await turns()
    assert caplog.text.count("backlog is full") == 2
    log.status(StatusMeta((Outcome(0, UnitStatus.COMMITTED, 0),)))
    queue.add([STATUS])
    await asyncio.wait_for(asyncio.gather(*waiting), 1)
    assert room.backlog() is None


async def test_everybody_waits_for_the_queue() -> None:
    queue = AppendQueue({}, ENTRY_OVERHEAD)
    room = OwnersRoom(queue, FoldedLog(), SETTINGS, lambda: 0.0)
    queue.add([STATUS])
    waiting = [asyncio.create_task(wait) for wait in (room.for_an_append(), queue.room())]
    await turns()
    assert not any(task.done() for task in waiting)
    queue.became_durable(queue.pack(1))
    await asyncio.wait_for(asyncio.gather(*waiting), 1)
