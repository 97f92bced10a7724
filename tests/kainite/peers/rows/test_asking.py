"""Who holds a row, as the log's owner says on a connection; and when the log is to be read instead."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.errors import LogRequestError
from kainite.base.position import Position
from kainite.log.state.loading import load_state
from kainite.log.views.row_holders import Toucher, touchers
from kainite.peers.access import Access
from kainite.peers.rows import answering
from kainite.peers.rows import asking as asking_module
from kainite.peers.rows.asking import ask_owner
from kainite.peers.sharing import reception
from kainite.peers.sharing.shared_log import SharedLog
from kainite.store.memory import MemoryStore
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.signature import Signatures
from kainite.uow.touches import Touched
from support.followed_log import LOG
from support.log_members import LIMIT, P, members
from support.next_append import append_next
from support.waiting import until


def unit(uow: str, key: int) -> Fragment:
    deltas = (Delta("t", Operation.UPDATE, {"id": key}, {"v": 1}, {}),)
    return Fragment(uow, deltas, Touched(*Signatures(None).of(deltas)), (UnitEnd(1),))


async def collected(log: SharedLog, *units: Fragment) -> None:
    log.judge_by(CurrentCatalogue(lambda: None, None))
    await append_next(log, "s", Position(1), Position(1), list(units))


async def asked(store: MemoryStore, table: str = "t", key: str = "1", log: str = LOG) -> list[Toucher] | None:
    return await ask_owner(store, P, log, Access(), table, {"id": key})


async def test_the_owner_says_what_the_log_says() -> None:
    async with members() as all_:
        await collected(await all_.join("a"), unit("T-1", 1), unit("T-2", 2), unit("T-3", 1))
        found = await asked(all_.store)
        assert found == touchers(load_state(all_.store, P), None, "t", {"id": "1"})
        assert found is not None
        assert [(one.uow, one.waits_for) for one in found] == [("T-1", None), ("T-3", 0)]
        assert await asked(all_.store, key="9") == []


async def test_an_answer_waits_until_what_it_tells_of_is_durable() -> None:
    async with members(put_interval=0.05) as all_:
        log = await all_.join("a")
        await collected(log, unit("T-1", 1))
        appending = asyncio.create_task(log.append("s", Position(2), Position(2), [unit("T-2", 1)], Position(1)))
        await asyncio.sleep(0)
        found = await asked(all_.store)
        assert found == touchers(load_state(all_.store, P), None, "t", {"id": "1"})
        await appending


async def test_a_table_that_the_catalogue_does_not_have_is_refused() -> None:
    from kainite.uow.catalogue.tables import Catalogue

    async with members() as all_:
        log = await all_.join("a")
        log.judge_by(CurrentCatalogue(lambda: Catalogue({}), Catalogue({})))
        with pytest.raises(LogRequestError, match="name the table as the catalogue does"):
            await asked(all_.store)


async def test_the_log_is_read_where_the_owner_cannot_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with members() as all_:
        assert await asked(all_.store) is None, "there is no owner"
        log = await all_.join("a")
        assert await asked(all_.store) is None, "the owner knows no catalogue"
        await collected(log, unit("T-1", 1), unit("T-2", 1))
        assert await asked(all_.store, log="another/0") is None
        monkeypatch.setattr(answering, "MOST_UNITS", 1)
        assert await asked(all_.store) is None, "there are more units than an answer has"
        head = all_.store.read_head(P)
        assert head is not None
        all_.store.swap_head(P, replace(head, version="x", address="127.0.0.1:1@another stack"), head)
        assert await asked(all_.store) is None, "the owner is not reached from here"
        await all_.kill("a")
    store = MemoryStore()
    assert await asked(store) is None


# While the store does not answer, questions must not pile up at the owner.
async def test_a_question_that_nothing_answers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Held(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.free = threading.Event()
            self.free.set()

        def put_batch(self, *args: Any) -> Any:
            self.free.wait(LIMIT)
            return super().put_batch(*args)

    monkeypatch.setattr(reception, "ANSWER_S", 0.05)
    store = Held()
    async with members(store) as all_:
        log = await all_.join("a")
        await collected(log, unit("T-1", 1))
        store.free.clear()
        appending = asyncio.create_task(log.append("s", Position(2), Position(2), [unit("T-2", 1)], Position(1)))
        owner = log.owner
        assert owner is not None
        await until(lambda: len(owner.state.units) == 2)
        try:
            assert await asyncio.wait_for(asked(store), asking_module.LIMIT_S / 2) is None
        finally:
            store.free.set()
        await appending


class Waiting:
    """Counts the peers that wait for the owner."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running = self.begun = 0
        self._wait = reception.Reception._owner  # noqa: SLF001 - what is counted
        monkeypatch.setattr(reception.Reception, "_owner", lambda here, peer: self._counted(here, peer))

    async def _counted(self, here: reception.Reception, peer: Any) -> Any:
        self.begun += 1
        self.running += 1
        try:
            return await self._wait(here, peer)
        finally:
            self.running -= 1


async def test_who_is_gone_is_not_waited_with_for_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    class Held(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.free = threading.Event()

        def read_batches(self, *args: Any, **more: Any) -> Any:
            self.free.wait(LIMIT)
            return super().read_batches(*args, **more)

    waiting = Waiting(monkeypatch)
    monkeypatch.setattr(asking_module, "LIMIT_S", 0.5)
    store = Held()
    async with members(store) as all_:
        log = await all_.join("a", reached=False)
        try:
            await until(lambda: (head := store.read_head(P)) is not None and bool(head.address))
            assert await asked(store) is None
            await until(lambda: waiting.begun and not waiting.running)
            assert log.is_claiming
        finally:
            store.free.set()
