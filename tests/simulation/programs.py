"""Programs on the log, their states, and the oracle that judges what is in an applications' partition.

A program runs the real client. It has a list of *intents*, and submits several at a time; what it writes down
survives it: its state (:class:`Ledger`), and which intents it has begun. An intent either takes the lock of its maker,
so that it may be submitted again after a crash, or it takes none and is submitted once.

The oracle shares no code with Kainite but the store that it reads. What it demands:

* an intent is in the log at most once, and exactly once when the program was told that it was appended, or is done;
  one that was given up is not there;
* no transaction that raises a lock stands between a transaction that was made under the lock and its maker's mark, so
  with one lock for all (the *validate* style) a transaction's number is its maker's mark + 1;
* a lock failure is told when a transaction behind the maker's mark, and in the log, raises one of the locks;
* a state is applied what the log has, in its order, each transaction once, and one at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kainite.base.errors import LogUnavailableError
from kainite.waltz.client import ApplicationLog, connected
from kainite.waltz.connecting import finder
from kainite.waltz.context import Transaction, TransactionBuilder, TransactionContext
from simulation.faults import NO_RESENDING, Effects, Faults
from simulation.loop import Process

PARTITION = "0:applications:0"


@dataclass(frozen=True, slots=True)
class Intent:
    """A transaction that a program means to append; its locks are numbers.

    Attributes:
        name: unlike any other.
        write, read, append: its locks.
        again: it may be submitted again after a crash: a lock tells whether it is in the log.
        gives_up: after a lock failure it is not tried again.
    """

    name: str
    write: tuple[int, ...] = ()
    read: tuple[int, ...] = ()
    append: tuple[int, ...] = ()
    again: bool = True
    gives_up: bool = False

    @property
    def raised(self) -> set[int]:
        return {*self.write, *self.append}

    def data(self, mark: int) -> bytes:
        """Returns the transaction as it is made with the state at ``mark``."""
        return json.dumps([self.name, mark]).encode()


@dataclass(slots=True)
class Ledger:
    """A state's own store: the data of all transactions, in order; the mark is the last one's number."""

    entries: list[bytes] = field(default_factory=list)

    @property
    def mark(self) -> int:
        return len(self.entries) - 1

    def names(self) -> set[str]:
        return {json.loads(data)[0] for data in self.entries}


@dataclass(slots=True)
class Promises:
    """The oracle of one partition.

    Attributes:
        read: returns the data of the transactions in the log from a number on.
        broken: is told what is wrong.
        intents: all that there are, by name.
        told: those of which a program was told that they are in the log.
        given_up: those of which a program was told that they are not.
    """

    read: Callable[[int], list[bytes]]
    broken: Callable[[str], None]
    intents: dict[str, Intent] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    _raised: dict[int, int] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Takes in what is new in the log, and judges it."""
        for data in self.read(len(self.log)):
            number = len(self.log)
            self.log.append(data)
            name, mark = json.loads(data)
            intent = self.intents[name]
            if name in self._places:
                self.broken(f"{name} is transaction {self._places[name]}, and {number} too")
            passed = [lock for lock in (*intent.write, *intent.read) if self._raised.get(lock, -1) > mark]
            if passed:
                by = self._raised[passed[0]]
                self.broken(f"{name} was made at mark {mark}, is transaction {number}, and {by} raised its lock")
            self._places[name] = number
            self._raised |= dict.fromkeys(intent.raised, number)
        for name in self.given_up & self._places.keys():
            self.broken(f"{name} was given up, and is transaction {self._places[name]}")

    def has_applied(self, ledger: Ledger, number: int, header: int, data: bytes) -> None:
        """Judges what a state is about to take."""
        self.look()
        if number >= len(self.log):
            self.broken(f"transaction {number} was fed, and the log has only {len(self.log)}")
        elif data != self.log[number] or header != len(data):
            self.broken(f"transaction {number} was fed as {data!r}, not {self.log[number]!r}")
        elif number > ledger.mark + 1:
            self.broken(f"transaction {number} was fed behind {ledger.mark}")

    def has_refused(self, intent: Intent, mark: int) -> None:
        """Judges a lock failure of an intent that was made at a mark."""
        self.look()
        behind = (self.intents[json.loads(data)[0]] for data in self.log[mark + 1 :])
        if not any({*intent.write, *intent.read} & other.raised for other in behind):
            self.broken(f"{intent.name} was refused at mark {mark}, and nothing in the log is in its way")

    def has_completed(self, intent: Intent, *, appended: bool) -> None:
        """Judges what a program was told of an intent."""
        self.look()
        if appended and intent.name not in self._places:
            self.broken(f"{intent.name} counts as appended, and the log does not have it")
        (self.told if appended else self.given_up).add(intent.name)
        self.look()

    def missing(self, done: set[str]) -> list[str]:
        """Returns what programs have done that is not in the log."""
        return sorted(done - self._places.keys() - self.given_up)


class _Submitted(TransactionContext):
    """An intent on its way.

    Args:
        program: whose it is.
        intent: which.
        first: whether no earlier run of the program has begun it.
    """

    def __init__(self, program: Program, intent: Intent, *, first: bool) -> None:
        self._program = program
        self._intent = intent
        self._first = first
        self._tried = False
        self._mark = -1
        self._there = False

    async def execute(self, builder: TransactionBuilder) -> bool:
        program, intent = self._program, self._intent
        self._mark = program.log.mark
        await asyncio.sleep(program.faults.between(0.0, 0.3, "execute", program.process.name, intent.name))
        self._there = intent.name in program.ledger.names()
        if self._there:
            if self._tried and self._first:
                program.promises.broken(f"{intent.name} is to be tried again, and is in the log")
            return False
        self._tried = True
        for locks, lock in (
            (intent.write, builder.write_lock), (intent.read, builder.read_lock), (intent.append, builder.append_lock),
        ):  # fmt: skip
            for number in locks:
                lock("lock", number)
        builder.data = intent.data(self._mark)
        builder.header = len(builder.data)
        return True

    def on_lock_failure(self) -> bool:
        self._program.promises.has_refused(self._intent, self._mark)
        return not self._intent.gives_up

    def on_completion(self, appended: bool) -> None:
        if not self._there:  # otherwise an earlier run of the program has appended it
            self._program.promises.has_completed(self._intent, appended=appended)


@dataclass(slots=True)
class Notes:
    """What a program has written down: which intents it has begun, and which are done."""

    begun: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


class Program:
    """One run of a program: a process, its connection, and the intents that it still has.

    Args:
        process: which it is.
        faults: of the run.
        store: the log's, to find the owner.
        ledger, notes: what outlives the run.
        intents: of the program, in order.
        promises: the oracle.
        pause: most seconds between two intents.
    """

    def __init__(
        self, process: Process, faults: Faults, store: Any, ledger: Ledger, notes: Notes, intents: list[Intent],
        promises: Promises, pause: float,
    ) -> None:  # fmt: skip
        self.process = process
        self.faults = faults
        self.ledger = ledger
        self.promises = promises
        self.log = ApplicationLog(self, finder(store, PARTITION), 0)
        self._notes = notes
        self._intents = iter([one for one in intents if one.name not in notes.done])
        self._effects = Effects(faults, process, "state", lambda name: OSError(f"{name} unanswered"), NO_RESENDING)
        self._applying = 0
        self._pause = pause

    async def run(self, workers: int, stop: asyncio.Event) -> None:
        """Submits what is left, and applies what is fed until it is told to stop."""
        stopping = asyncio.create_task(stop.wait())
        async with connected(self.log):
            submitting = [asyncio.create_task(self._submit()) for _ in range(workers)]
            await asyncio.wait({stopping})
            for task in submitting:
                task.cancel()
            await asyncio.gather(*submitting, return_exceptions=True)

    async def _submit(self) -> None:
        for intent in self._intents:
            if not intent.again and intent.name in self._notes.begun:
                continue  # whether it is in the log is not known, and no lock would tell
            first = intent.name not in self._notes.begun
            self._notes.begun.add(intent.name)
            try:
                await self.log.submit(_Submitted(self, intent, first=first))
            except LogUnavailableError:
                return
            self._notes.done.add(intent.name)
            await asyncio.sleep(self._pause * self.faults.chance("thinks", self.process.name, intent.name))

    # What the client asks of the state.

    async def mark(self) -> int:
        if self._applying:
            self.promises.broken("a state is asked for its mark while a transaction is applied")
        return await asyncio.to_thread(self._effects.call, "mark", lambda: self.ledger.mark)

    async def apply(self, transaction: Transaction) -> None:
        data = await transaction.read()
        if self._applying:
            self.promises.broken(f"transaction {transaction.id} is applied beside another one")
        self._applying += 1
        await asyncio.to_thread(self._apply, transaction, data)

    def _apply(self, transaction: Transaction, data: bytes) -> None:
        """Applies a transaction to its end, whoever waits for it."""
        try:
            self._effects.call("apply", lambda: self._commit(transaction, data))
        finally:
            self._applying -= 1

    def _commit(self, transaction: Transaction, data: bytes) -> None:
        """Raises the mark from the number before; otherwise another client of the state has done so."""
        self.promises.has_applied(self.ledger, transaction.id, transaction.header, data)
        if transaction.id == self.ledger.mark + 1:
            self.ledger.entries.append(data)


def waiting(intents: list[Intent], notes: Notes) -> list[str]:
    """Returns the intents of a program that are neither done nor left alone."""
    left = Counter(one.name for one in intents if one.name not in notes.done)
    for one in intents:
        if not one.again and one.name in notes.begun:
            left.pop(one.name, None)
    return sorted(left)
