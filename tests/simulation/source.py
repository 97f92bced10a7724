"""A source's tables and history, both generated: several levels, self references, unique keys, cascades, no key at all.

The source is a model of a database of its own: rows in dictionaries, changes that hold in the order of the history.
Each transaction also inserts a row with its own name into ``journal``, a table without a key: so the target shows which
transactions it has, and how often. Nothing here is Kainite's code, because the oracle judges by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

Row = dict[str, Any]
State = dict[str, dict[int, Row]]
Token = tuple[str, str, Any]

JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key of one column to a table's ``id``."""

    column: str
    parent: str
    cascades: bool


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table: ``id`` is its key, ``v`` a value; ``code`` is a unique key where there is one."""

    name: str
    unique: bool
    references: tuple[Reference, ...]

    def ddl(self) -> str:
        columns = ["id bigint PRIMARY KEY", "v bigint"]
        columns += ["code bigint UNIQUE"] if self.unique else []
        for reference in self.references:
            action = " ON DELETE CASCADE" if reference.cascades else ""
            columns.append(f"{reference.column} bigint REFERENCES {reference.parent} (id){action}")
        return f"CREATE TABLE {self.name} ({', '.join(columns)});"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one row: ``old`` is the row before it, ``new`` the columns that it writes."""

    table: str
    op: str
    id: int
    new: Row
    old: Row


@dataclass(slots=True)
class Transaction:
    """A transaction of the source.

    Attributes:
        name, number: its name, and its place in the history from 1.
        changes: in order.
        writes, reads: what another transaction may conflict with it on.
    """

    name: str
    number: int
    changes: list[Change] = field(default_factory=list)
    writes: set[Token] = field(default_factory=set)
    reads: set[Token] = field(default_factory=set)

    def conflicts(self, other: Transaction) -> bool:
        return not (
            self.writes.isdisjoint(other.writes)
            and self.writes.isdisjoint(other.reads)
            and self.reads.isdisjoint(other.writes)
        )


@dataclass(frozen=True, slots=True)
class Style:
    """The way in which a source tells of its transactions.

    Attributes:
        ordinals: each delta has its place in the transaction.
        numbers: each end has the transaction's number.
        befores: updates tell the old values; deletes, and changes of unique values, always do.
        cascades_told: rows that a cascade deletes have deltas of their own.
    """

    ordinals: bool
    numbers: bool
    befores: bool
    cascades_told: bool


class Source:
    """The tables and the history.

    Args:
        rng: chooses everything.
        transactions: how many.
        style: how the source tells of them.
    """

    def __init__(self, rng: Random, transactions: int, style: Style) -> None:
        self._rng = rng
        self._style = style
        self._next = 0
        self._gone: dict[str, list[int]] = {}
        self._codes: dict[str, list[int]] = {}
        self.tables = {table.name: table for table in _tables(rng)}
        self.state: State = {name: {} for name in self.tables}
        self.history = [self._transaction(number) for number in range(1, transactions + 1)]

    def ddl(self) -> str:
        """Returns what makes the target's tables; a transaction whose name is in ``refused`` is refused."""
        return (
            "".join(table.ddl() for table in self.tables.values())
            + f"CREATE TABLE {JOURNAL} (what text); CREATE TABLE refused (what text PRIMARY KEY);"
            + f"CREATE TRIGGER refusing BEFORE INSERT ON {JOURNAL} WHEN EXISTS"
            + " (SELECT 1 FROM refused WHERE what = NEW.what) BEGIN SELECT RAISE(ABORT, 'refused'); END;"
        )

    def deltas(self, transaction: Transaction) -> list[Row]:
        """Returns the objects of the transaction's emit lines, its end last."""
        items = [self._delta(transaction, change) for change in transaction.changes]
        items.append({"uow": transaction.name, "table": JOURNAL, "op": "insert", "row": {"what": transaction.name}})
        if self._style.ordinals:
            for ordinal, item in enumerate(items):
                item["ordinal"] = ordinal
        end: Row = {"uow": transaction.name, "end": True, "count": len(items)}
        if self._style.numbers:
            end["number"] = transaction.number
        return [*items, end]

    def messages(self, transaction: Transaction, rng: Random) -> list[bytes]:
        """Returns the transaction's deltas as payloads of stream records, cut anywhere."""
        items = self.deltas(transaction)
        cuts = sorted({0, len(items), *(rng.randrange(len(items) + 1) for _ in range(rng.choice((0, 0, 1, 3))))})
        return [json.dumps({"action": "emit", "deltas": items[begin:end]}).encode() for begin, end in pairwise(cuts)]

    def _delta(self, transaction: Transaction, change: Change) -> Row:
        item: Row = {"uow": transaction.name, "table": change.table, "op": change.op, "key": {"id": change.id}}
        if change.op != "delete":
            item["row"] = change.new
        told = self._style.befores or change.op == "delete" or "code" in change.new
        if change.old and told:
            item["before"] = change.old
        return item

    def _transaction(self, number: int) -> Transaction:
        transaction = Transaction(f"T-{number}", number)
        for _ in range(self._rng.choice((1, 1, 2, 3, 5))):
            self._act(transaction)
        return transaction

    def _act(self, transaction: Transaction) -> None:
        table = self.tables[self._rng.choice(list(self.tables))]
        rows = self.state[table.name]
        act = self._rng.random()
        if not rows or act < 0.35:
            self._insert(transaction, table)
            return
        key = self._rng.choice(sorted(rows))
        if act < 0.55:
            self._update(transaction, table, key, {"v": self._value()})
        elif act < 0.65 and table.unique:
            self._update(transaction, table, key, {"code": self._code(table)})
        elif act < 0.8 and table.references:
            reference = self._rng.choice(table.references)
            parent = self._parent(reference, key)
            self._update(transaction, table, key, {reference.column: parent, "v": self._value()})
        elif act < 0.85 and not table.unique:
            row = {**rows[key], "v": self._value()}
            self._change(transaction, Change(table.name, "upsert", key, row, dict(rows[key])))
        else:
            self._delete(transaction, table.name, key)
            if self._rng.random() < 0.4:
                self._insert(transaction, table, key)

    def _insert(self, transaction: Transaction, table: SourceTable, key: int | None = None) -> None:
        gone = self._gone.get(table.name, [])
        if key is None or key in self.state[table.name]:
            self._next += 1
            key = self._next
            again = [old for old in gone if old not in self.state[table.name]]
            if again and self._rng.random() < 0.5:
                key = self._rng.choice(again)
        row: Row = {"id": key, "v": self._value()}
        if table.unique:
            row["code"] = self._code(table)
        for reference in table.references:
            row[reference.column] = self._parent(reference, key)
        self._change(transaction, Change(table.name, "insert", key, row, {}))

    def _update(self, transaction: Transaction, table: SourceTable, key: int, new: Row) -> None:
        old = self.state[table.name][key]
        self._change(transaction, Change(table.name, "update", key, new, dict(old)))

    def _delete(self, transaction: Transaction, table: str, key: int) -> None:
        self._clear(transaction, table, key)
        if key in self.state[table]:
            self._change(transaction, Change(table, "delete", key, {}, dict(self.state[table][key])))

    def _clear(self, transaction: Transaction, table: str, key: int) -> None:
        """Deletes what refers to a row, except for what the row's delete takes along and the source does not tell."""
        for child, reference in self._referring(table):
            for row in sorted(self.state[child]):
                there = self.state[child].get(row)
                if there is None or there[reference.column] != key:
                    continue
                if reference.cascades and not self._style.cascades_told:
                    self._clear(transaction, child, row)
                else:
                    self._delete(transaction, child, row)

    def _referring(self, parent: str) -> Iterator[tuple[str, Reference]]:
        for table in self.tables.values():
            for reference in table.references:
                if reference.parent == parent:
                    yield table.name, reference

    def _change(self, transaction: Transaction, change: Change) -> None:
        before = {name: dict(rows) for name, rows in self.state.items()}
        apply(self.tables, self.state, change)
        transaction.changes.append(change)
        for name, table in self.tables.items():
            for key in sorted(before[name].keys() | self.state[name].keys()):
                old, new = before[name].get(key), self.state[name].get(key)
                if old != new or (name, key) == (change.table, change.id):
                    self._touch(transaction, table, key, old, new)
                if old is not None and new is None:
                    self._gone.setdefault(name, []).append(key)

    def _touch(self, transaction: Transaction, table: SourceTable, key: int, old: Row | None, new: Row | None) -> None:
        transaction.writes.add(("row", table.name, key))
        if old is None or new is None:
            transaction.writes.add(("existence", table.name, key))
        for image, other in ((old, new), (new, old)):
            if image is None:
                continue
            if table.unique and image["code"] is not None and (other is None or other["code"] != image["code"]):
                transaction.writes.add(("unique", table.name, image["code"]))
            for reference in table.references:
                named = image[reference.column]
                if named is not None and (other is None or other[reference.column] != named):
                    transaction.reads.add(("existence", reference.parent, named))

    def _value(self) -> int:
        self._next += 1
        return 1000 + self._next

    def _code(self, table: SourceTable) -> int:
        taken = {row["code"] for row in self.state[table.name].values()}
        known = self._codes.setdefault(table.name, [])
        free = [code for code in known if code not in taken]
        if free and self._rng.random() < 0.5:
            return self._rng.choice(free)
        known.append(self._value())
        return known[-1]

    def _parent(self, reference: Reference, child: int) -> int | None:
        there = sorted(key for key in self.state[reference.parent])
        if not there or self._rng.random() < 0.2:
            return None
        chosen = self._rng.choice(there)
        return None if self._descends(reference, chosen, child) else chosen

    def _descends(self, reference: Reference, key: int | None, child: int) -> bool:
        """Tells whether a row is the child itself or below it, so that the child must not refer to it."""
        if reference.column != "up":
            return False
        rows, steps = self.state[reference.parent], 0
        while key is not None and steps <= len(rows):
            if key == child:
                return True
            key, steps = rows.get(key, {}).get("up"), steps + 1
        return False


def apply(tables: dict[str, SourceTable], state: State, change: Change) -> None:
    """Applies a change to a state, cascades included."""
    rows = state[change.table]
    if change.op == "delete":
        rows.pop(change.id, None)
        _cascade(tables, state, change.table, change.id)
    elif change.op == "update":
        rows[change.id] = {**rows[change.id], **change.new}
    else:
        rows[change.id] = dict(change.new)


def _cascade(tables: dict[str, SourceTable], state: State, parent: str, key: int) -> None:
    for table in tables.values():
        for reference in table.references:
            if reference.parent != parent:
                continue
            for child in [child for child, row in state[table.name].items() if row[reference.column] == key]:
                if state[table.name].pop(child, None) is not None:
                    _cascade(tables, state, table.name, child)


def _tables(rng: Random) -> Sequence[SourceTable]:
    tables: list[SourceTable] = []
    for number in range(rng.choice((1, 2, 2, 3, 4))):
        name = f"t{number}"
        references: list[Reference] = []
        if number and rng.random() < 0.8:
            references.append(Reference("p", f"t{rng.randrange(number)}", rng.random() < 0.4))
        if rng.random() < 0.3:
            references.append(Reference("up", name, False))
        tables.append(SourceTable(name, rng.random() < 0.4, tuple(references)))
    return tables
