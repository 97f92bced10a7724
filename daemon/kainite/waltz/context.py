"""The interfaces that a program implements to use the log: an application, and contexts of transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from kainite.waltz.lock_hash import lock_hash


@dataclass(slots=True)
class TransactionBuilder:
    """A transaction that is being made.

    Attributes:
        header: any 32-bit number; it is known before the data is read.
        data: the transaction's content.
        write_locks: hashes that the transaction writes; it fails if a transaction behind the mark has written one.
        read_locks: hashes that the transaction reads; it fails if a transaction behind the mark has written one.
        append_locks: hashes that the transaction writes, even if another transaction has written them.
    """

    header: int = 0
    data: bytes = b""
    write_locks: set[int] = field(default_factory=set)
    read_locks: set[int] = field(default_factory=set)
    append_locks: set[int] = field(default_factory=set)

    def write_lock(self, name: str, *key: str | int) -> None:
        self.write_locks.add(lock_hash(name, *key))

    def read_lock(self, name: str, *key: str | int) -> None:
        self.read_locks.add(lock_hash(name, *key))

    def append_lock(self, name: str, *key: str | int) -> None:
        self.append_locks.add(lock_hash(name, *key))


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction of the log.

    Attributes:
        id: the transaction's place in the order, from 0, without gaps.
        header: the number that its builder set.
        read: asks the owner for the transaction's data, and returns it.
    """

    id: int
    header: int
    read: Callable[[], Awaitable[bytes]]


class Application(Protocol):
    """A program's own state, and its mark: the id of the last transaction in it."""

    async def mark(self) -> int:
        """Returns the mark as it is durable with the state; −1 for an empty state."""

    async def apply(self, transaction: Transaction) -> None:
        """Applies a transaction and raises the mark to its id, both in one transaction of the state's own store.

        Called in the order of ids, one at a time. An error makes the client ask for the mark again, after a pause, and
        apply again from there. Where several clients share one state, raise the mark from id − 1 to id; where that
        changes nothing, another client has applied the transaction.
        """


class TransactionContext:
    """One transaction that a program wants to append. Override the methods that you need."""

    async def execute(self, builder: TransactionBuilder) -> bool:
        """Makes the transaction from the program's present state; returns whether it shall be appended.

        Called again, with an empty builder, whenever the transaction was not appended: it must change nothing else.
        """
        raise NotImplementedError

    def on_lock_failure(self) -> bool:
        """Takes the news of a failed lock; returns whether to try again once the transaction in its way is applied."""
        return True

    def on_completion(self, appended: bool) -> None:
        """Takes the news, once, whether the transaction is in the log now."""

    def on_application(self) -> None:
        """Takes the news, once, after :meth:`on_completion`, that the transaction has been applied here."""
