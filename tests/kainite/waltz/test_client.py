"""Programs on the log: contexts are carried out, each transaction is applied once and in order, whatever is cut."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.log.contract import LogStore
from kainite.peers.connection.frames import MAX_BODY
from kainite.waltz.client import ApplicationLog, Owner, connected
from kainite.waltz.context import Transaction, TransactionBuilder, TransactionContext
from support.application_world import Ledger, Proxy, World, program, raw_client, world
from support.doors import SECRET
from support.dynamodb_doubles import on_each_store
from support.waiting import until

ROUNDS = int(os.environ.get("KAINITE_VALIDATE_ROUNDS", "1"))


class Next(TransactionContext):
    """Appends the number of the transaction that it is going to be: the mark + 1, under a lock that all share."""

    def __init__(self, ledger: Ledger, *, locked: bool = True) -> None:
        self._ledger = ledger
        self._locked = locked
        self.executions = 0
        self.heard: list[str] = []

    async def execute(self, builder: TransactionBuilder) -> bool:
        self.executions += 1
        if self._locked:
            builder.write_lock("everything")
        builder.data = str(len(self._ledger.entries)).encode()
        return True

    def on_lock_failure(self) -> bool:
        self.heard.append("lock")
        return True

    def on_completion(self, appended: bool) -> None:
        self.heard.append(f"completion {appended}")

    def on_application(self) -> None:
        self.heard.append("application")


async def test_a_transaction_is_appended_applied_and_told_in_order() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            context = Next(ledger)
            assert await log.submit(context)
            assert ledger.entries == [b"0"]
            assert log.mark == 0
            assert context.heard == ["completion True", "application"]


class Unwanted(Next):
    async def execute(self, builder: TransactionBuilder) -> bool:
        return False


class GivesUp(Next):
    def on_lock_failure(self) -> bool:
        self.heard.append("gives up")
        return False


async def test_a_transaction_that_is_not_wanted_is_not_appended() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            context = Unwanted(ledger)
            assert not await log.submit(context)
            assert context.heard == ["completion False"]
        assert await found.stored() == []


async def test_conflicting_transactions_are_made_again_until_all_are_in_the_log() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            contexts = [Next(ledger) for _ in range(4)]
            assert await asyncio.gather(*(log.submit(context) for context in contexts)) == [True] * 4
        assert await found.stored() == [b"0", b"1", b"2", b"3"]
        assert sum(context.executions for context in contexts) > 4


async def test_a_context_may_give_up_after_a_lock_failure() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            contexts = [Next(ledger), GivesUp(ledger), GivesUp(ledger)]
            assert sorted(await asyncio.gather(*(log.submit(context) for context in contexts))) == [False, False, True]
        assert len(await found.stored()) == 1


async def test_transactions_without_locks_do_not_meet() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            contexts = [Next(ledger, locked=False) for _ in range(300)]
            assert all(await asyncio.gather(*(log.submit(context) for context in contexts)))
        assert all(context.executions == 1 for context in contexts)
        assert ledger.entries == await found.stored()


async def test_a_state_that_fails_is_asked_for_its_mark_and_applied_again() -> None:
    async with world() as found:
        ledger = Ledger(broken={0, 3, 4})
        async with program(found, ledger) as log:
            contexts = [Next(ledger) for _ in range(6)]
            for context in contexts:
                assert await log.submit(context)
        assert ledger.entries == await found.stored() == [str(number).encode() for number in range(6)]
        assert all(context.heard[-2:] == ["completion True", "application"] for context in contexts)
        assert all(len(context.heard) == 2 for context in contexts)


async def test_programs_with_states_of_their_own_apply_the_same() -> None:
    async with world() as found, contextlib.AsyncExitStack() as stack:
        ledgers = [Ledger() for _ in range(3)]
        logs = [await stack.enter_async_context(program(found, ledger)) for ledger in ledgers]
        for _ in range(5):
            contexts = [Next(ledger) for ledger in ledgers]
            assert all(await asyncio.gather(*map(lambda log, context: log.submit(context), logs, contexts)))
        await until(lambda: all(len(ledger.entries) == 15 for ledger in ledgers))
        assert [ledger.entries for ledger in ledgers] == [[str(number).encode() for number in range(15)]] * 3


class SharedState:
    """A database that several programs share: each transaction raises the mark from the id before it."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(
            "CREATE TABLE IF NOT EXISTS mark (id integer); CREATE TABLE IF NOT EXISTS entry (data text);"
            "INSERT INTO mark SELECT -1 WHERE NOT EXISTS (SELECT * FROM mark)"
        )

    async def mark(self) -> int:
        found: int = self._database.execute("SELECT id FROM mark").fetchone()[0]
        return found

    async def apply(self, transaction: Transaction) -> None:
        data = await transaction.read()
        self._database.execute("BEGIN IMMEDIATE")
        raised = self._database.execute("UPDATE mark SET id = ? WHERE id = ?", (transaction.id, transaction.id - 1))
        if raised.rowcount:
            self._database.execute("INSERT INTO entry VALUES (?)", (data.decode(),))
        self._database.execute("COMMIT")

    def entries(self) -> list[str]:
        return [data for (data,) in self._database.execute("SELECT data FROM entry ORDER BY rowid")]


class Marked(TransactionContext):
    """Appends the database's mark + 1, under a lock that all share."""

    def __init__(self, state: SharedState) -> None:
        self._state = state

    async def execute(self, builder: TransactionBuilder) -> bool:
        builder.write_lock("everything")
        builder.data = str(await self._state.mark() + 1).encode()
        return True


@on_each_store
@pytest.mark.timeout(300)
async def test_on_each_store_programs_that_share_a_database_apply_each_transaction_once(
    store: LogStore, tmp_path: Path
) -> None:
    states = [SharedState(tmp_path / "state.db") for _ in range(2)]
    async with world(store) as found, contextlib.AsyncExitStack() as running:
        logs = [await running.enter_async_context(connected(ApplicationLog(s, found.find, 0))) for s in states]
        for _ in range(3):
            submits = [log.submit(Marked(state)) for log, state in zip(logs, states, strict=True)]
            assert all(await asyncio.gather(*submits))
            await found.own()
        assert states[0].entries() == [str(number) for number in range(6)]
        assert await found.stored() == [str(number).encode() for number in range(6)]


async def test_a_program_that_begins_late_or_again_is_fed_what_it_lacks() -> None:
    async with world() as found:
        async with raw_client(found) as raw:
            for number in range(250):
                raw.append(-1, data=str(number).encode())
            assert await raw.flush() == ([], 249)
        late = Ledger()
        for reached in (120, 250):
            async with program(found, late) as log:
                await log.applied(reached - 1)
        assert late.entries == await found.stored()


async def test_a_state_of_another_log_is_refused() -> None:
    async with world() as found, program(found, Ledger(entries=[b"of", b"another"])) as log:
        with pytest.raises(LogRequestError, match="its state belongs to another log"):
            await log.submit(Unwanted(Ledger()))


async def test_a_client_that_is_closed_tells_those_who_wait() -> None:
    async with world() as found:
        await found.disown()
        async with program(found, Ledger()) as log:
            waiting = asyncio.create_task(log.submit(Next(Ledger())))
            await asyncio.sleep(0)
        with pytest.raises(LogUnavailableError):
            await waiting


async def test_a_submit_that_nobody_waits_for_any_more_leaves_the_client_whole() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            for _ in range(20):
                given_up = asyncio.create_task(log.submit(Next(ledger, locked=False)))
                await asyncio.sleep(0.002)
                given_up.cancel()
            assert await log.submit(Next(ledger))
        assert ledger.entries == await found.stored()


async def test_appends_that_were_under_way_when_the_link_was_cut_are_in_the_log_once() -> None:
    async with world() as found, Proxy(found.server.address).running() as proxy:
        ledger = Ledger()
        async with program(found, ledger, proxy) as log:
            names = [f"transaction {number}" for number in range(200)]
            submitting = [asyncio.create_task(log.submit(Named(name))) for name in names]
            for _ in range(10):
                await asyncio.sleep(0.02)
                proxy.cut()
            assert all(await asyncio.gather(*submitting))
            assert ledger.entries == await found.stored()
            assert sorted(ledger.entries) == sorted(name.encode() for name in names)


class Large(Next):
    async def execute(self, builder: TransactionBuilder) -> bool:
        builder.data = bytes(MAX_BODY)
        return True


async def test_a_transaction_that_no_owner_takes_is_refused_to_its_maker() -> None:
    async with world() as found:
        ledger = Ledger()
        async with program(found, ledger) as log:
            with pytest.raises(LogRequestError, match="is larger than the log's owner takes"):
                await log.submit(Large(ledger))
            assert await log.submit(Next(ledger))


class Slow(Ledger):
    """A state whose store commits a while after it was asked to, whoever waits for that."""

    def __init__(self) -> None:
        super().__init__()
        self.applying = 0
        self.go = asyncio.Event()

    async def apply(self, transaction: Transaction) -> None:
        self.applying += 1
        assert self.applying == 1, "two transactions are applied at once"
        data = await transaction.read()
        await self.go.wait()
        self.entries.append(data)
        self.applying -= 1


async def test_a_cut_in_the_midst_of_an_application_waits_for_its_end() -> None:
    async with world() as found, Proxy(found.server.address).running() as proxy:
        slow = Slow()
        async with program(found, slow, proxy) as log:
            submitting = asyncio.create_task(log.submit(Named("one")))
            await until(lambda: slow.applying)
            await until(lambda: len(slow.entries) == 0 and found.owned.mark == 0)
            proxy.cut()
            await asyncio.sleep(0.2)  # in which a client that does not wait would mount, and apply again
            slow.go.set()
            assert await submitting
        assert slow.entries == [b"one"]


class Named(TransactionContext):
    """Appends a name, without locks: if it is appended again after all, nothing else would show it.

    Args:
        name: of the transaction.
        locks: numbers that it locks.
    """

    def __init__(self, name: str, locks: Sequence[int] = ()) -> None:
        self._name = name
        self._locks = locks

    async def execute(self, builder: TransactionBuilder) -> bool:
        for number, lock in enumerate(self._locks):
            (builder.write_lock, builder.read_lock, builder.append_lock)[number % 3]("lock", lock)
        builder.data = self._name.encode()
        return True


class Shared(Ledger):
    """A state of several programs: each transaction raises the mark from the id before it."""

    async def apply(self, transaction: Transaction) -> None:
        data = await transaction.read()
        if transaction.id == len(self.entries):
            self.entries.append(data)


async def test_an_append_that_another_program_of_the_state_has_applied_is_not_made_again() -> None:
    async with world() as found, Proxy(found.server.address).running() as proxy:
        shared = Shared()
        async with program(found, shared), program(found, shared, proxy) as log:
            assert await log.submit(Named("zero"))
            proxy.answers = False
            submitting = asyncio.create_task(log.submit(Named("one")))
            await until(lambda: shared.entries == [b"zero", b"one"])
            proxy.answers = True
            proxy.cut()
            assert await submitting
            assert await found.stored() == shared.entries == [b"zero", b"one"]


async def test_a_former_owner_is_not_asked_once_a_later_one_was_seen() -> None:
    connections = []

    async def former(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        writer.transport.abort()

    async with world() as found, await asyncio.start_server(former, "127.0.0.1", 0) as stale:
        await found.own()
        former_owner = Owner(
            Address("127.0.0.1", stale.sockets[0].getsockname()[1]), found.owned.generation - 1, SECRET
        )
        named = 0

        async def find() -> Owner:
            nonlocal named
            named += 1
            return former_owner if 1 < named < 4 else await found.find()

        ledger = Ledger()
        async with connected(ApplicationLog(ledger, find, 0)) as log:
            assert await log.submit(Next(ledger))
            found.service.owns_no_more(0, "the test cuts it")
            found.service.owns(0, found.owned)
            assert await log.submit(Next(ledger))
        assert (ledger.entries, named, connections) == ([b"0", b"1"], 4, [])


async def chaos(found: World, proxy: Proxy, stop: asyncio.Event, seed: int) -> None:
    """Cuts links, delays and splits what they carry, and changes owners, until it is stopped."""
    chance = random.Random(seed)
    while not stop.is_set():
        await asyncio.sleep(chance.uniform(0.0, 0.05))
        match chance.randrange(4):
            case 0:
                proxy.cut()
            case 1:
                proxy.delay = chance.choice((0.0, 0.005))
            case 2:
                proxy.chunk = chance.choice((7, 100, 1 << 16))
            case 3:
                await found.own()
    proxy.delay, proxy.chunk = 0.0, 1 << 16


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.timeout(300)
async def test_under_chaos_each_transaction_is_the_one_behind_its_makers_mark(seed: int) -> None:
    """Runs programs that each append their mark + 1 under one lock: so data and transaction id are equal, or two
    programs did not see each other's transactions."""
    stop = asyncio.Event()
    async with (
        world() as found,
        Proxy(found.server.address, seed).running() as proxy,
        contextlib.AsyncExitStack() as running,
    ):
        ledgers = [Ledger() for _ in range(3)]
        logs = [await running.enter_async_context(program(found, ledger, proxy)) for ledger in ledgers]
        storm = asyncio.create_task(chaos(found, proxy, stop, seed))
        for _ in range(12):
            submits = [log.submit(Next(ledger)) for log, ledger in zip(logs, ledgers, strict=True)]
            assert all(await asyncio.gather(*submits))
        stop.set()
        await storm
        await until(lambda: all(len(ledger.entries) == 36 for ledger in ledgers))
        assert await found.stored() == [str(number).encode() for number in range(36)]
        assert all(ledger.entries == ledgers[0].entries for ledger in ledgers)


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.timeout(300)
async def test_under_chaos_each_transaction_is_in_the_log_once_and_a_replay_gives_the_same_state(seed: int) -> None:
    stop, chance = asyncio.Event(), random.Random(seed)
    async with (
        world() as found,
        Proxy(found.server.address, seed).running() as proxy,
        contextlib.AsyncExitStack() as running,
    ):
        ledgers = [Ledger() for _ in range(2)]
        logs = [await running.enter_async_context(program(found, ledger, proxy)) for ledger in ledgers]
        storm = asyncio.create_task(chaos(found, proxy, stop, seed))
        names = [f"{number}" for number in range(120)]
        contexts = [Named(name, chance.sample(range(100), 2)) for name in names]
        assert all(await asyncio.gather(*(logs[at % 2].submit(each) for at, each in enumerate(contexts))))
        stop.set()
        await storm
        await until(lambda: all(len(ledger.entries) >= 120 for ledger in ledgers))
        replayed = Ledger()
        async with program(found, replayed) as log:
            await log.applied(found.owned.mark)
        stored = await found.stored()
        assert sorted(stored) == sorted(name.encode() for name in names)
        assert [replayed.entries, *(ledger.entries for ledger in ledgers)] == [stored] * 3
