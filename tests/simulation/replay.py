"""What the transactions in the target lead to, in the source's order: the oracle compares the target with these rows.

A transaction that conflicts with a discarded one and comes later is *behind* it. It meets rows that the source never
had, and with them the target may refuse the source's order of its changes, and take another one. Say that a child
leaves its parent in T-1, and T-2 deletes the parent, then the child. Nothing orders these two deletes. Without T-1 the
parent still has the child, and the target takes T-2 only if the child goes first. Likewise it may take a transaction
only after a later one with which it does not conflict.

So what is refused of transactions behind a discarded one is made after what is not; if that is in vain, everything is
made anew, with it and all that it conflicts with first: a parent may go, and take along a child that left it in the
discarded transaction, or find that the child has another parent by then. Changes of one row stay in order, and so do
transactions that conflict, and each is made whole. All other transactions are made in the source's order.

A source lists what its cascades took, and the target may have taken it before the listed delete. So a delete that finds
no row is no error where the row's parent goes in the same transaction, and takes it along (ON DELETE CASCADE). Behind a
discarded transaction such a row may not be there for another reason: the discarded one has made it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from simulation.schema import Tables, rebuilding
from simulation.source import Database, Key, Transaction, Write, execute, key_of
from simulation.taken_along import taken_along


class Replay:
    """Makes transactions on a database of its own.

    Args:
        tables: the source's.
        told: whether deletes tell the parents that the row had; otherwise any parent may have been the row's.
    """

    def __init__(self, tables: Tables, *, told: bool = True) -> None:
        self._tables = tables
        self._told = told
        self._latest = 0
        self._rebuilt = sorted(
            ((r.since, table) for table in tables.values() for r in table.references if table.since < r.since),
            key=lambda rebuilt: rebuilt[0],
        )
        self.database = self._first()

    def add(
        self, fresh: Sequence[Transaction], there: dict[int, Transaction], behind: Collection[int] = frozenset()
    ) -> None:
        """Adds transactions; begins anew when one of them comes before what is there already.

        Args:
            fresh: the transactions, in the source's order.
            there: all that are there, these included, by the number of that for which each stands.
            behind: the numbers of those behind a discarded one.

        Raises:
            sqlite3.IntegrityError: the database refuses one.
        """
        if fresh and fresh[0].stands_for < self._latest:
            self._begin_anew()
            fresh = [one for _, one in sorted(there.items())]
        refused = self._made(fresh, behind)
        if refused:
            self._begin_anew()
            refused = self._made(_moved_up(refused[0], [one for _, one in sorted(there.items())]), behind)
        if refused:
            self._in_some_order(refused[0].writes)  # raises what is wrong with it

    def close(self) -> None:
        self.database.close()

    def _begin_anew(self) -> None:
        self.close()
        self._latest, self.database = 0, self._first()

    def _made(self, some: Sequence[Transaction], behind: Collection[int]) -> Sequence[Transaction]:
        """Makes transactions; returns those that are refused even after all others."""
        while some:
            refused = self._refused(some, behind)
            if len(refused) == len(some):
                return refused
            some = refused
        return []

    def _refused(self, fresh: Sequence[Transaction], behind: Collection[int]) -> list[Transaction]:
        """Makes transactions; returns those that are refused for now, and those that conflict with one of these."""
        refused: list[Transaction] = []
        for one in fresh:
            self._rebuild(one.stands_for)
            if any(one.shared(other) for other in refused):
                refused.append(one)
            elif one.number not in behind:
                self._in_order(one.writes)
            elif not self._taken(one):
                refused.append(one)
        return refused

    def _rebuild(self, number: int) -> None:
        for since, table in self._rebuilt:
            if self._latest < since <= number:
                self.database.connection.executescript(rebuilding(self._tables, table, since))
        self._latest = max(self._latest, number)

    def _taken(self, one: Transaction) -> bool:
        """Makes a transaction in some order, whole or not at all; returns whether it is made."""
        self.database.connection.execute("SAVEPOINT one")
        try:
            self._in_some_order(one.writes)
        except sqlite3.IntegrityError:
            self.database.connection.execute("ROLLBACK TO one")
            return False
        finally:
            self.database.connection.execute("RELEASE one")
        return True

    def _in_order(self, writes: Sequence[Write]) -> None:
        for write in writes:
            execute(self.database.connection, self._tables, write)

    def _in_some_order(self, writes: Sequence[Write]) -> None:
        """Makes changes; those that are refused after the others, but those of one row in order."""
        whole = writes
        while writes:
            refused: list[Write] = []
            for write in writes:
                try:
                    if any(self._rows(write) & self._rows(other) for other in refused):
                        refused.append(write)
                    elif not self._is_gone(write, whole):
                        self._in_order([write])
                except sqlite3.IntegrityError:
                    refused.append(write)
            if len(refused) == len(writes):
                self._in_order(refused)  # raises what is wrong with it
            writes = refused

    def _is_gone(self, write: Write, whole: Sequence[Write]) -> bool:
        """Returns whether a row that another delete of the transaction may take along is not there."""
        table = self._tables[write.table]
        gone = key_of(table, write.key) not in self.database.rows(table)
        return gone and taken_along(self._tables, write, whole, told=self._told)

    def _rows(self, write: Write) -> set[tuple[str, Key]]:
        """Returns the row that a change finds, and the one that it leaves where it changes the key."""
        table = self._tables[write.table]
        return {(table.name, key_of(table, row)) for row in (write.key, {**write.key, **write.new})}

    def _first(self) -> Database:
        return Database(self._tables, {table.name for _, table in self._rebuilt})


def _moved_up(wanted: Transaction, some: Sequence[Transaction]) -> list[Transaction]:
    """Returns the transactions with the wanted one first, and before it what it conflicts with, in order."""
    first: list[Transaction] = []
    for one in reversed(some):
        if one is wanted or any(one.shared(other) for other in first):
            first.insert(0, one)
    return [*first, *(one for one in some if one not in first)]
