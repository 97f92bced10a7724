"""The state is loaded under the mount that it is loaded for, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kainite.base.errors import LogCorruptError, LogFencedError
from kainite.log.format.entry import Batch
from kainite.owner.loading import load_mounted
from kainite.owner.mount import mount
from kainite.settings import LogSettings
from kainite.store.memory import MemoryStore
from kainite.uow.signature import Signatures
from support.log_builders import fragment
from support.main_log import MainLog

SETTINGS = LogSettings("t", "the daemon", enabled=True)
P = SETTINGS.partition


class Interrupted(MemoryStore):
    """Something happens while the log is read."""

    def __init__(self) -> None:
        super().__init__()
        self.overtaken = self.corrupt = False

    def read_batches(self, partition: str, first_id: int, last_id: int | None = None, **how: Any) -> Iterator[Batch]:
        if self.overtaken:
            self.overtaken = False
            mount(self, P, SETTINGS.owner, 1.0)
        if self.corrupt:
            raise LogCorruptError("an entry is missing")
        return super().read_batches(partition, first_id, last_id, **how)


def written() -> Interrupted:
    store = Interrupted()
    MainLog(store, Signatures(None)).append(fragment("T", [1], count=1))
    return store


async def test_the_state_is_what_was_written() -> None:
    store = written()
    state = await load_mounted(store, SETTINGS, mount(store, P, SETTINGS.owner, 1000.0))
    assert [unit.uow for unit in state.units.values()] == ["T"]


@pytest.mark.parametrize("corrupt", [False, True])
async def test_an_owner_that_is_overtaken_meanwhile_does_not_begin(corrupt: bool) -> None:
    """Raises the claim as the cause, too, where the later owner has removed what was being read."""
    store = written()
    mounted = mount(store, P, SETTINGS.owner, 1000.0)
    store.overtaken, store.corrupt = True, corrupt
    with pytest.raises(LogFencedError):
        await load_mounted(store, SETTINGS, mounted)


async def test_a_log_that_does_not_read_back_is_told() -> None:
    store = written()
    mounted = mount(store, P, SETTINGS.owner, 1000.0)
    store.corrupt = True
    with pytest.raises(LogCorruptError):
        await load_mounted(store, SETTINGS, mounted)
