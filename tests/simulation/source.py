"""A source's history, generated: transactions on a database of its own, and what the source tells of them.

The database is SQLite in memory, with the tables of :mod:`simulation.schema`: so cascades are those of a database, and
not of a model. A transaction's tokens say what another one may conflict with it on. They are found by comparing the
rows before and after each change. Nothing here is Kainite's code, because the oracle judges by it.

Each transaction also inserts a row with its own name into ``journal``, a table without a key: so the target shows which
transactions it has, and how often.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from simulation.odd import SPOILED, OddUnits, spoiling
from simulation.schema import JOURNAL, Change, Reference, SourceTable, Tables, ddl, generated
from simulation.second_target import SecondTarget

Row = dict[str, Any]
Key = tuple[Any, ...]
Rows = dict[Key, Row]
Token = tuple[Any, ...]


MOST_ROWS = 50
"""Rows of a table from which on rows are deleted in place of inserted: each change compares all rows."""

REMEMBERED = 200
"""Keys and codes that have gone, of which one may come again."""


@dataclass(frozen=True, slots=True)
class Write:
    """A change of one row: ``key`` finds it, ``new`` is what is written, ``old`` the row as it was before."""

    table: str
    op: str
    key: Row
    new: Row
    old: Row


@dataclass(slots=True)
class Transaction:
    """A transaction of the source.

    Attributes:
        name, number: its name, and its place in the history from 1.
        kind: normal, correction or reversal.
        stands_for: the number of the transaction that a correction or reversal takes the place of; else its own.
        writes: its changes, in order.
        written, read: the tokens on which another transaction may conflict with it.
        named: of these, the tokens that its own changes bear by their keys and new values. Others bear only the rows as
            they were before, and rows that the database deletes by a foreign key.
    """

    name: str
    number: int
    kind: str = "normal"
    stands_for: int = 0
    writes: list[Write] = field(default_factory=list)
    written: set[Token] = field(default_factory=set)
    read: set[Token] = field(default_factory=set)
    named: set[Token] = field(default_factory=set)

    @property
    def rows(self) -> set[Token]:
        """Returns the tokens of the rows that it writes."""
        return {token for token in self.written if token[0] == "row"}

    def shared(self, other: Transaction) -> set[Token]:
        """Returns what the transactions conflict on."""
        return (self.written & (other.written | other.read)) | (self.read & other.written)


@dataclass(frozen=True, slots=True)
class Style:
    """The way in which a source tells of its transactions.

    Attributes:
        ordinals: each delta has its place in the transaction.
        numbers: each end has the transaction's number.
        befores: updates tell the old values.
        deletes_told: deletes, and changes of keys, always do.
        cascades_told: rows that a cascade changes have deltas of their own.
        rich: the tables have the kinds of keys and actions that are rare.
        spelled: keys are told in other spellings, too.
        ends: a transaction ends with a line that says so; else each delta tells its commit time (:func:`commit_time`).
        leaves: the number of a transaction that deletes a parent, whose child has left it just before; 0 for none.
    """

    ordinals: bool
    numbers: bool
    befores: bool
    cascades_told: bool
    deletes_told: bool = True
    rich: bool = False
    spelled: bool = False
    ends: bool = True
    leaves: int = 0


def commit_time(name: str) -> str:
    """Returns what stands for a transaction's commit time in its messages until they are put."""
    return f"@{name}@"


class Database:
    """The tables in memory; also what the oracle replays on.

    Args:
        tables: all that there will ever be, with all columns.
        plain: names of those that get their later foreign keys by and by.
    """

    def __init__(self, tables: Tables, plain: Collection[str] = ()) -> None:
        self.tables = tables
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA foreign_keys = ON")
        latest = 1_000_000
        made = (ddl(tables, table, 0 if table.name in plain else latest) for table in tables.values())
        self.connection.executescript("".join(made))

    def write(self, write: Write) -> None:
        """Makes a change; raises IntegrityError when the database refuses it, or when there is no such row."""
        execute(self.connection, self.tables, write)

    def rows(self, table: SourceTable) -> Rows:
        return rows_of(self.connection, table)

    def close(self) -> None:
        self.connection.close()


def rows_of(connection: sqlite3.Connection, table: SourceTable) -> Rows:
    """Returns a table's rows by their keys, without the columns that are null; none when there is no such table."""
    try:
        cursor = connection.execute(f"SELECT * FROM {table.name}")
    except sqlite3.OperationalError:
        return {}
    names = [column[0] for column in cursor.description]
    found: Rows = {}
    for values in cursor:
        row = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        found[key_of(table, row)] = row
    return found


def key_of(table: SourceTable, row: Mapping[str, Any]) -> Key:
    """Returns a row's key, such that equal keys are one row."""
    if not table.folded:
        return tuple([row[column] for column in table.key])
    return tuple(str(row[column]).casefold() for column in table.key)


def execute(connection: sqlite3.Connection, tables: Tables, write: Write) -> None:
    """Makes one change; raises IntegrityError when the database refuses it, or when there is no such row."""
    table = tables[write.table]
    where = " AND ".join(f"{column} = ?" for column in write.key)
    if write.op == "delete":
        sql, values = f"DELETE FROM {table.name} WHERE {where}", [*write.key.values()]
    elif write.op == "update":
        assigned = ", ".join(f"{column} = ?" for column in write.new)
        sql, values = f"UPDATE {table.name} SET {assigned} WHERE {where}", [*write.new.values(), *write.key.values()]
    else:
        marks = ", ".join("?" * len(write.new))
        sql, values = f"INSERT INTO {table.name} ({', '.join(write.new)}) VALUES ({marks})", [*write.new.values()]
        if write.op == "upsert":
            changed = ", ".join(f"{column} = excluded.{column}" for column in write.new if column not in table.key)
            sql = f"{sql} ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changed}"
    if connection.execute(sql, values).rowcount != 1:
        raise sqlite3.IntegrityError(f"no such row: {write}")


class Source:
    """The tables and the history.

    Args:
        rng: chooses everything.
        transactions: how many.
        style: how the source tells of them.
        changes: of the tables.
        corrected: by the number of a correction, that of the transaction whose place it takes.
        prefix: what all names of tables begin with.
    """

    def __init__(
        self,
        rng: Random,
        transactions: int,
        style: Style,
        changes: tuple[Change, ...] = (),
        corrected: Mapping[int, int] | None = None,
        prefix: str = "",
    ) -> None:
        self._rng = rng
        self.journal = f"{prefix}{JOURNAL}"
        self.refusals = f"{prefix}refused"
        """The target's table with the names of what it refuses."""
        self._style = style
        self._next = 0
        self._number = 0
        self._left: Key = ()
        self._leaving: Key = ()
        self._gone: dict[str, list[Key]] = {}
        self._codes: dict[str, list[int]] = {}
        self.odd = OddUnits()
        """What else comes from the source: it takes numbers, and spoils transactions."""
        self.second: SecondTarget | None = None
        """Gets something of most transactions, beside the first target."""
        self.tables = generated(rng, changes, rich=style.rich, prefix=prefix)
        self.database = Database(self.tables)
        self._now = {name: self.database.rows(table) for name, table in self.tables.items()}
        self._reached = {name: _reached(self.tables, name) for name in self.tables}
        corrected = corrected or {}
        self.history: list[Transaction] = []
        for number in range(1, transactions + 1):
            self._number = number
            self.history.append(self._correction(corrected[number]) if number in corrected else self._transaction())

    @property
    def state(self) -> dict[str, Rows]:
        """Returns the rows that the history leads to."""
        return self._now

    def refused(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Returns which transactions the target refuses at first, of these numbers and of those before a correction.

        A correction would discard a failed transaction of which it writes a row. So none of these is refused, and in
        its place one that the correction may touch.
        """
        corrections = [one for one in self.history if one.kind != "normal"]
        if not corrections:
            return numbers
        touched = [n for n in range(1, corrections[0].number) if self.history[n - 1].shared(corrections[0])]
        some = (*numbers, *touched[-3:])
        return tuple(sorted({n for n in some if not any(one.rows & self.history[n - 1].rows for one in corrections)}))

    @property
    def tells_parents(self) -> bool:
        """Returns whether deletes tell the row that they delete."""
        return self._style.befores or self._style.deletes_told

    def ddl(self) -> str:
        """Returns what makes the target's first tables; a transaction whose name is in ``refusals`` is refused."""
        return (
            "".join(ddl(self.tables, table, 0) for table in self.tables.values() if not table.since)
            + f"CREATE TABLE {self.journal} (what text); CREATE TABLE {self.refusals} (what text PRIMARY KEY);"
            + f"CREATE TRIGGER refusing_{self.journal} BEFORE INSERT ON {self.journal} WHEN EXISTS"
            + f" (SELECT 1 FROM {self.refusals} WHERE what = NEW.what) BEGIN SELECT RAISE(ABORT, 'refused'); END;"
        )

    def deltas(self, transaction: Transaction, rng: Random) -> list[Row]:
        """Returns the objects of the transaction's emit lines, its end last."""
        items = [self._delta(transaction, write, rng) for write in transaction.writes]
        items.append(
            {"uow": transaction.name, "table": self.journal, "op": "insert", "row": {"what": transaction.name}}
        )
        if self.second is not None:
            items += self.second.deltas(transaction.name, transaction.number)
        if any(one.kind == SPOILED and one.uow == transaction.name for one in self.odd.planned):
            items.append(spoiling(transaction.name))
        if self._style.ordinals:
            for ordinal, item in enumerate(items):
                item["ordinal"] = ordinal
        if not self._style.ends:
            return [{**item, "time": commit_time(transaction.name)} for item in items]
        end: Row = {"uow": transaction.name, "end": True, "count": len(items)}
        if transaction.kind != "normal":
            end["kind"] = transaction.kind
        if self._style.numbers:
            end["number"] = self.number_of(transaction.number)
        return [*items, end]

    def number_of(self, place: int) -> int:
        """Returns the number that the source gives to the transaction at that place of the history."""
        return place + sum(after < place for after in self.odd.numbers())

    def messages(self, transaction: Transaction, rng: Random) -> list[bytes]:
        """Returns the transaction's deltas as payloads of stream records, cut anywhere."""
        items = self.deltas(transaction, rng)
        cuts = sorted({0, len(items), *(rng.randrange(len(items) + 1) for _ in range(rng.choice((0, 0, 1, 3))))})
        return [json.dumps({"action": "emit", "deltas": items[begin:end]}).encode() for begin, end in pairwise(cuts)]

    def _delta(self, transaction: Transaction, write: Write, rng: Random) -> Row:
        table = self.tables[write.table]
        item: Row = {
            "uow": transaction.name,
            "table": table.part if table.parted and rng.random() < 0.5 else table.name,
            "op": write.op,
            "key": {column: self._spelled(value, rng) for column, value in write.key.items()},
        }
        if write.op != "delete":
            item["row"] = write.new
        always = write.op == "delete" or "code" in write.new or any(column in write.new for column in table.key)
        if write.old and (self._style.befores or (always and self._style.deletes_told)):
            item["before"] = write.old
        return item

    def _spelled(self, value: Any, rng: Random) -> Any:
        if not self._style.spelled or rng.random() < 0.5:
            return value
        return value.swapcase() if isinstance(value, str) else str(value)

    def _correction(self, number: int) -> Transaction:
        """Returns a transaction that does what an earlier one did, in its place."""
        one = self.history[number - 1]
        kind = self._rng.choice(("correction", "reversal"))
        name = f"T-{self._number}"
        return Transaction(name, self._number, kind, number, one.writes, one.written, one.read, one.named)

    def _transaction(self) -> Transaction:
        transaction = Transaction(f"T-{self._number}", self._number, stands_for=self._number)
        if (played := self._played()) is not None and 0 <= played[0] - self._number <= 2:
            self._play(transaction, *played)
            return transaction
        for _ in range(self._rng.choice((1, 1, 2, 3, 5))):
            self._act(transaction)
        return transaction

    def _played(self) -> tuple[int, SourceTable, Reference] | None:
        """Returns a foreign key that acts, and the number at which a parent goes: when the foreign key comes, if so."""
        some = [(r.since or self._style.leaves, table, r) for table in self.tables.values() if not table.since
                for r in table.references if r.on_delete == "CASCADE" and r.column != "up"]  # fmt: skip
        return next((one for one in some if one[0] > 2), None)

    def _play(self, transaction: Transaction, number: int, table: SourceTable, reference: Reference) -> None:
        """Lets a row leave its parent just before the parent goes."""
        parent = self.tables[reference.parent]
        match self._number - number:
            case -2:
                self._left = self._insert(transaction, parent)
                self._leaving = self._insert(transaction, table)
                named = self._now[parent.name].get(self._left, {}).get(reference.named)
                if self._leaving in self._now[table.name] and named is not None:
                    self._update(transaction, table, self._leaving, {reference.column: named, "v": self._value()})
            case -1 if self._leaving in self._now[table.name]:
                self._update(transaction, table, self._leaving, {reference.column: None, "v": self._value()})
            case 0 if self._left in self._now[parent.name]:
                self._delete(transaction, parent, self._left)

    def _act(self, transaction: Transaction) -> None:
        there = [name for name, table in self.tables.items() if table.since <= self._number]
        table = self.tables[self._rng.choice(there)]
        rows = self._now[table.name]
        act = self._rng.random()
        if not rows or (act < 0.35 and len(rows) < MOST_ROWS):
            self._insert(transaction, table)
            return
        key = self._rng.choice(sorted(rows))
        if act < 0.35:
            self._delete(transaction, table, key)
            return
        references = [reference for reference in table.references if reference.column in table.columns(self._number)]
        if act < 0.55:
            self._update(transaction, table, key, self._values(table))
        elif act < 0.65 and table.unique:
            self._update(transaction, table, key, {"code": self._code(table), "v": self._value()})
        elif act < 0.8 and references:
            reference = self._rng.choice(references)
            self._update(transaction, table, key, {reference.column: self._parent(reference, key), "v": self._value()})
        elif act < 0.85 and not table.unique:
            row = {**rows[key], **self._values(table)}
            self._make(transaction, Write(table.name, "upsert", _key(table, row), row, self._old(table, rows[key])))
        elif act < 0.9 and self._style.rich and not table.folded:
            self._next += 1
            self._update(transaction, table, key, {"id": self._next})
        else:
            self._delete(transaction, table, key)
            if self._rng.random() < 0.4:
                upsert = self._style.rich and not table.unique and self._rng.random() < 0.5
                self._insert(transaction, table, key, "upsert" if upsert else "insert")

    def _values(self, table: SourceTable) -> Row:
        wide = "w" in table.columns(self._number) and self._rng.random() < 0.5
        return {"v": self._value(), **({"w": self._value()} if wide else {})}

    def _insert(self, transaction: Transaction, table: SourceTable, key: Key | None = None, op: str = "insert") -> Key:
        """Inserts a row, with a new key if the given one is taken; returns its key."""
        rows = self._now[table.name]
        if key is None or key in rows:
            self._next += 1
            more = (self._rng.randrange(3) for _ in table.key[1:])
            key = (f"k{self._next}",) if table.folded else (self._next, *more)
            again = [old for old in self._gone.get(table.name, [])[-REMEMBERED:] if old not in rows]
            if again and self._rng.random() < 0.5:
                key = self._rng.choice(again)
        row: Row = {**dict(zip(table.key, key, strict=True)), **self._values(table)}
        if table.folded and self._rng.random() < 0.5:
            row["id"] = row["id"].upper()
        if table.unique:
            row["code"] = self._code(table)
        for reference in table.references:
            row[reference.column] = self._parent(reference, key)
        self._make(transaction, Write(table.name, op, _key(table, row), row, {}))
        return key_of(table, row)

    def _update(self, transaction: Transaction, table: SourceTable, key: Key, new: Row) -> bool:
        old = self._now[table.name][key]
        later = [(child, r) for child, r in self._referring(table.name) if r.since > self._number and r.named in new]
        if any(self._children(child, reference, old) for child, reference in later):
            return False  # the target does not know the foreign key yet, and would not act
        return self._make(transaction, Write(table.name, "update", _key(table, old), new, self._old(table, old)))

    def _delete(self, transaction: Transaction, table: SourceTable, key: Key) -> None:
        self._clear(transaction, table, key)
        if (old := self._now[table.name].get(key)) is not None:
            self._make(transaction, Write(table.name, "delete", _key(table, old), {}, self._old(table, old)))

    def _old(self, table: SourceTable, row: Row) -> Row:
        """Returns a row as the source tells it, with its nulls."""
        return {**dict.fromkeys(table.columns(self._number)), **row}

    def _clear(self, transaction: Transaction, table: SourceTable, key: Key) -> None:
        """Deletes what refers to a row, except for what the row's delete takes along and the source does not tell."""
        old = self._now[table.name].get(key)
        for child, reference in list(self._referring(table.name)):
            for row in self._children(child, reference, old) if old else []:
                if row not in self._now[child.name] or (child.name, row) == (table.name, key):
                    continue
                told = self._style.cascades_told or reference.since > self._number
                if reference.on_delete == "SET NULL":
                    if told:
                        self._update(transaction, child, row, {reference.column: None, "v": self._value()})
                elif reference.on_delete == "CASCADE" and not told:
                    self._clear(transaction, child, row)
                else:
                    self._delete(transaction, child, row)

    def _referring(self, parent: str) -> Iterator[tuple[SourceTable, Reference]]:
        for table in self.tables.values():
            for reference in table.references:
                if reference.parent == parent:
                    yield table, reference

    def _children(self, child: SourceTable, reference: Reference, parent: Row) -> list[Key]:
        """Returns the rows that refer to a parent's row."""
        named = folded(parent.get(reference.named))
        found = (key for key, row in self._now[child.name].items() if folded(row.get(reference.column)) == named)
        return sorted(found) if named is not None else []

    def _make(self, transaction: Transaction, write: Write) -> bool:
        """Makes a change; returns False, with nothing done, when the database refuses it."""
        before = self._now
        try:
            self.database.write(write)
        except sqlite3.IntegrityError:
            return False
        changed = self._reached[write.table]
        self._now = {
            name: self.database.rows(table) if name in changed else before[name] for name, table in self.tables.items()
        }
        transaction.writes.append(write)
        table = self.tables[write.table]
        own = key_of(table, write.key), key_of(table, {**write.key, **write.new})
        for name, rows in self._now.items():
            if name not in changed:
                continue
            for key in sorted(before[name].keys() | rows.keys()):
                old, new = before[name].get(key), rows.get(key)
                if old != new and (name != table.name or key not in own):
                    self._touch(transaction, self.tables[name], old, new, told=False)
                if old is not None and new is None:
                    self._gone.setdefault(name, []).append(key)
        self._touch(transaction, table, before[table.name].get(own[0]), self._now[table.name].get(own[1]), told=True)
        return True

    def _touch(
        self, transaction: Transaction, table: SourceTable, old: Row | None, new: Row | None, *, told: bool
    ) -> None:
        """Adds the tokens of a row that has changed.

        A row that the database changes by itself and does not delete has none: such a change and a later one of the
        same row may come in any order, as long as they lead to the same rows. The oracle looks at the rows.
        """
        if old is not None and new is not None and not told:
            return
        rows: set[Token] = {("row", table.name, key_of(table, image)) for image in (old, new) if image}
        (was, read_of_was), (now, read_of_now) = self._tokens(table, old, new), self._tokens(table, new, old)
        transaction.written |= rows | was | now
        transaction.read |= read_of_was | read_of_now
        if told:
            transaction.named |= rows | now | read_of_now

    def _tokens(self, table: SourceTable, image: Row | None, other: Row | None) -> tuple[set[Token], set[Token]]:
        """Returns what a row writes and reads by values that its other image does not have."""
        written: set[Token] = set()
        read: set[Token] = set()
        image, other = image or {}, other or {}
        if table.unique and "code" in image and image["code"] != other.get("code"):
            written.add(("unique", table.name, image["code"]))
        for column in {r.named for _, r in self._referring(table.name) if r.since <= self._number}:
            if column in image and folded(image[column]) != folded(other.get(column)):
                written.add(("existence", table.name, column, folded(image[column])))
        for r in table.declared(self._number):
            if r.column in image and folded(image[r.column]) != folded(other.get(r.column)):
                read.add(("existence", r.parent, r.named, folded(image[r.column])))
        return written, read

    def _value(self) -> int:
        self._next += 1
        return 1000 + self._next

    def _code(self, table: SourceTable) -> int:
        taken = {row.get("code") for row in self._now[table.name].values()}
        known = self._codes.setdefault(table.name, [])
        free = [code for code in known[-REMEMBERED:] if code not in taken]
        if free and self._rng.random() < 0.5:
            return self._rng.choice(free)
        known.append(self._value())
        return known[-1]

    def _parent(self, reference: Reference, child: Key) -> Any:
        there = self._now[reference.parent]
        usable = sorted(key for key, row in there.items() if reference.named in row)
        if not usable or self._rng.random() < 0.2:
            return None
        chosen = self._rng.choice(usable)
        return None if self._descends(reference, chosen, child) else there[chosen][reference.named]

    def _descends(self, reference: Reference, key: Key | None, child: Key) -> bool:
        """Tells whether a row is the child itself or below it, so that the child must not refer to it."""
        if reference.column != "up":
            return False
        rows = self._now[reference.parent]
        by_name = {folded(row.get(reference.named)): name for name, row in rows.items()}
        for _ in range(len(rows) + 1):
            if key is None or key not in rows:
                return False
            if key == child:
                return True
            up = rows[key].get("up")
            key = None if up is None else by_name.get(folded(up))
        return True


def _reached(tables: Tables, name: str) -> set[str]:
    """Returns the tables of which a change of the named one may change rows: those that refer to it, and so on."""
    found = {name}
    while fresh := {t.name for t in tables.values() if any(r.parent in found for r in t.references)} - found:
        found |= fresh
    return found


def _key(table: SourceTable, row: Mapping[str, Any]) -> Row:
    return {column: row[column] for column in table.key}


def folded(value: Any) -> Any:
    """Returns a value as foreign keys compare it."""
    return value.casefold() if isinstance(value, str) else value
