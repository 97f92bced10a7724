"""Owning the log: it is put before the shards when its state is loaded, and taken away when it is fenced."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kainite.base.clock import boot_seconds
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT
from kainite.owner.mount import LeaseWatch, mount
from kainite.peers.sharing.head_look import ToldOnce
from kainite.peers.sharing.latest_reading import LatestReading
from kainite.peers.sharing.membership import Fenced, NotMounted
from kainite.peers.sharing.owning import Owning
from kainite.peers.sharing.present_log import PresentLog
from kainite.settings import UowSettings
from kainite.store.memory import MemoryStore
from support.log_members import LIMIT, SETTINGS, P


def owning_of(store: LogStore) -> Owning:
    present, reading = PresentLog(boot_seconds, 1.0), LatestReading(boot_seconds)
    watch = LeaseWatch(boot_seconds)
    return Owning(
        store, SETTINGS, UowSettings(), None, ProcessIdentity("me"), watch, boot_seconds, None, SILENT, present,
        reading, ToldOnce(), True,
    )  # fmt: skip


async def test_an_owner_serves_until_it_is_fenced() -> None:
    store = MemoryStore()
    owning, mounted = owning_of(store), asyncio.Event()
    running = asyncio.create_task(owning.own(None, mounted.set))
    await asyncio.wait_for(mounted.wait(), LIMIT)
    assert owning.owner is not None
    assert owning.present_log.log is owning.owner
    mount(store, P, "usurper", 1.0, gone=owning.owner.generation)
    assert await asyncio.wait_for(running, LIMIT) == Fenced()
    assert owning.owner is None


class OvertakenStore(MemoryStore):
    """Another process mounts the partition as soon as this one has, before it has ``what``."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "__dict__").get("_what"):
            self._what = ""
            head = self.read_head(P)
            mount(self, P, "usurper", 1.0, gone=None if head is None else head.generation)
        return super().__getattribute__(name)


@pytest.mark.parametrize("what", ["read_tail", "read_batches"])
async def test_who_is_fenced_before_its_log_is_loaded_has_claimed_it_all_the_same(what: str) -> None:
    told: list[None] = []
    assert await owning_of(OvertakenStore(what)).own(None, lambda: told.append(None)) == Fenced()
    assert told == []


async def test_what_another_process_holds_is_not_mounted() -> None:
    store = MemoryStore()
    mount(store, P, "other", 1000.0)
    told: list[None] = []
    assert await owning_of(store).own(None, lambda: told.append(None)) == NotMounted()
    assert told == []
