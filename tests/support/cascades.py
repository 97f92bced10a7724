"""Random schemas whose foreign keys act, and a source that runs random changes on them and tells its deltas.

The source does not tell what a foreign key's action did, as MySQL's binary log does not. Some deltas have no
``before``, and numbers are sometimes spelled as text. A foreign key's column may have a default, which an insert then
leaves to the database, or be generated from ``v``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from kainite.uow.delta import Delta, Operation

ACTIONS = ("NO ACTION", "CASCADE", "SET NULL", "SET DEFAULT")
LETTERS = "aAbB"


@dataclass(frozen=True)
class Reference:
    """A foreign key: the parent's place in the schema, the column that it names, its actions.

    ``filled`` says what fills the foreign key's column: "default", "generated", or "" for nothing but deltas.
    """

    parent: int
    column: str
    on_delete: str
    on_update: str
    filled: str = ""


@dataclass(frozen=True)
class TableSpec:
    """A table ``t0``, ``t1`` …, with ``id`` as its key, or, if ``owned``, its first foreign key and ``n``.

    ``code`` is unique. ``folded`` keys are texts that ignore case.
    """

    folded: bool
    owned: bool
    references: tuple[Reference, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return ("r0", "n") if self.owned else ("id",)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.key, "code", "v", *(f"r{i}" for i in range(self.owned, len(self.references))))

    def filled(self, how: str) -> frozenset[str]:
        return frozenset(f"r{i}" for i, reference in enumerate(self.references) if reference.filled == how)


Schema = tuple[TableSpec, ...]


@st.composite
def schemas(draw: st.DrawFn, folded: bool) -> Schema:
    """Generates two to four tables; ``folded`` lets keys ignore case, which PostgreSQL here cannot."""
    tables: list[TableSpec] = []
    for place in range(draw(st.integers(2, 4))):
        owned = place > 0 and any(not table.owned for table in tables) and draw(st.integers(0, 3)) == 0
        references = [_reference(draw, tables, place, owned and number == 0) for number in range(draw(_FEW) + owned)]
        tables.append(TableSpec(folded and not owned and draw(st.integers(0, 3)) == 0, owned, tuple(references)))
    return tuple(tables)


_FEW = st.sampled_from([0, 1, 1, 1, 2])
_ACTION = st.sampled_from(["CASCADE", "CASCADE", "CASCADE", "NO ACTION", "SET NULL", "SET DEFAULT"])

_FILLED = st.sampled_from(["", "", "default", "generated"])


def _reference(draw: st.DrawFn, tables: Sequence[TableSpec], place: int, owner: bool) -> Reference:
    keyed = [number for number, table in enumerate(tables) if not table.owned]
    if owner:
        plain = [number for number in keyed if not tables[number].folded]
        parent, column = (draw(st.sampled_from(plain)), "id") if plain else (draw(st.sampled_from(keyed)), "code")
        action = st.sampled_from(["CASCADE", "NO ACTION"])
        return Reference(parent, column, draw(action), draw(action))
    parent = draw(st.integers(0, place))
    named = "id" if parent in keyed and draw(st.booleans()) else "code"
    filled = draw(_FILLED)
    text = named == "id" and parent < place and tables[parent].folded
    if filled == "generated" and parent < place and not text:  # PostgreSQL takes no other actions for these
        return Reference(parent, named, draw(st.sampled_from(["CASCADE", "CASCADE", "NO ACTION"])), "NO ACTION", filled)
    return Reference(parent, named, draw(_ACTION), draw(_ACTION), "default" if filled == "default" else "")


def ddl(schema: Schema) -> str:
    """Returns the statements that create the tables, in SQLite's and PostgreSQL's SQL."""
    return "\n".join(_table(schema, place) for place in range(len(schema)))


def _table(schema: Schema, place: int) -> str:
    spec = schema[place]
    parts = [f"{column} {_type(schema, place, column)}" for column in spec.columns if column != "code"]
    parts += ["code integer UNIQUE", f"PRIMARY KEY ({', '.join(spec.key)})"]
    parts += [
        f"FOREIGN KEY (r{i}) REFERENCES t{key.parent} ({key.column}) "
        f"ON DELETE {key.on_delete} ON UPDATE {key.on_update}"
        for i, key in enumerate(spec.references)
    ]
    return f"CREATE TABLE t{place} ({', '.join(parts)});"


def _type(schema: Schema, place: int, column: str) -> str:
    if column == "id":
        return "text COLLATE NOCASE NOT NULL" if schema[place].folded else "integer NOT NULL"
    kind = "text" if _is_text(schema, place, column) else "integer"
    if column in schema[place].filled("generated"):
        return f"{kind} GENERATED ALWAYS AS (nullif(v % 4, 0)) STORED"
    if column in schema[place].filled("default"):
        return f"{kind} DEFAULT {repr(LETTERS[1]) if kind == 'text' else 1}"
    return f"{kind} NOT NULL" if column in schema[place].key else kind


def _is_text(schema: Schema, place: int, column: str) -> bool:
    if column == "id":
        return schema[place].folded
    if not column.startswith("r"):
        return False
    key = schema[place].references[int(column[1:])]
    return key.column == "id" and schema[key.parent].folded


@dataclass(frozen=True)
class Change:
    """A change that the source may refuse: operation, table, which row, new values, and how its delta is told.

    "renew" deletes a row and inserts it again: its children may be gone, or stand elsewhere, after that.

    ``mask`` chooses the columns that an update or upsert writes, and those that an insert leaves to their defaults.
    """

    op: str
    table: int
    which: tuple[int, int]
    values: tuple[int, ...]
    mask: int
    told: bool
    spelled: bool


_ROW = st.sampled_from([1, 2, 3, 1, 2, 3, 4])


def changes(tables: int = 4) -> st.SearchStrategy[Change]:
    number = st.integers(0, 7)
    return st.builds(
        Change,
        st.sampled_from(["insert", "insert", "update", "update", "delete", "delete", "upsert", "renew"]),
        st.integers(0, tables - 1),
        st.tuples(_ROW, _ROW),
        st.tuples(*[number] * 8),
        st.integers(0, 255),
        st.booleans(),
        st.booleans(),
    )


def filled_keys(schema: Schema) -> list[tuple[int, Reference]]:
    """Returns the foreign keys to other tables that a default or the database fills in, with their tables' places."""
    return [
        (place, key)
        for place, spec in enumerate(schema)
        for key in spec.references
        if key.filled and key.parent < place
    ]


@st.composite
def filled_in(draw: st.DrawFn, schema: Schema) -> tuple[list[Change], list[Change]]:
    """Generates a change of a parent, and one of a child whose foreign key a default or the database fills in."""
    child, parent = draw(st.sampled_from([(place, key.parent) for place, key in filled_keys(schema)]))
    numbers = st.tuples(*[st.integers(0, 7)] * 8)
    new = st.tuples(*[_ROW] * len(schema[child].key), st.integers(4, 7), _ROW, *[st.sampled_from([0, 0, 0, 1])] * 5)
    masks, told = st.sampled_from([0, 255, 255, 8]), st.booleans()
    above = draw(st.sampled_from(["renew", "renew", "update", "upsert", "delete"]))
    one = Change(above, parent, draw(st.sampled_from([(1, 1), (2, 2)])), draw(numbers), draw(masks), draw(told), False)
    row = draw(st.sampled_from([(4, 4), (4, 4), (1, 1), (2, 2)]))
    below = draw(st.sampled_from(["insert", "insert", "update", "upsert"]))
    other = Change(below, child, row, draw(new), draw(masks), draw(told), False)
    return [one], [other]


fillings = st.lists(st.sampled_from([1, 1, 2, 2, 3, 0]), min_size=36, max_size=36)
"""Generates what :meth:`Source.fill` takes."""


class Source:
    """The source database, in memory: it has the same constraints and actions as the target."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.executescript(ddl(schema))

    def fill(self, numbers: Sequence[int]) -> list[Delta]:
        """Inserts up to three rows a table, whose parents ``numbers`` chooses, and returns their deltas."""
        chosen = iter(numbers)
        deltas = []
        for place in range(len(self.schema)):
            for number in (1, 2, 3):
                named = [next(chosen) for _ in range(3)]
                values = (*[number] * len(self.schema[place].key), number, number, *named)
                alone = (*values[: -len(named) - 1], 0, 0, 0, 0)
                deltas += [
                    self.run(Change("insert", place, (number, number), row, 0, True, False)) for row in (values, alone)
                ]
        return [delta for delta in deltas if delta]

    def transaction(self, listed: Sequence[Change], *, deferred: bool = False) -> list[Delta]:
        """Runs changes, without those that are refused; none stays if the commit refuses what was deferred."""
        self.connection.execute("BEGIN")
        self.connection.execute(f"PRAGMA defer_foreign_keys = {'ON' if deferred else 'OFF'}")
        deltas = [delta for change in listed for delta in self._told(change)]
        try:
            self.connection.execute("COMMIT")
        except sqlite3.IntegrityError:
            self.connection.execute("ROLLBACK")
            return []
        return deltas

    def _told(self, change: Change) -> list[Delta]:
        if change.op != "renew":
            return [delta for delta in [self.run(change)] if delta]
        place = change.table % len(self.schema)
        key, found = self._found(place, change)
        deleted = self.run(replace(change, op="delete"))
        if found is None or deleted is None:
            return []
        computed = self.schema[place].filled("generated")
        row = {column: value for column, value in dict(found).items() if column not in computed}
        inserted = self._executed(place, Delta(f"t{place}", Operation.INSERT, key, row, {}), change)
        return [deleted, inserted] if inserted else [deleted]

    def _found(self, place: int, change: Change) -> tuple[dict[str, Any], sqlite3.Row | None]:
        numbered = zip(self.schema[place].key, change.which, strict=False)
        key = {column: self._value(place, column, number) for column, number in numbered}
        where = " AND ".join(f"{column} = ?" for column in key)
        found = self.connection.execute(f"SELECT * FROM t{place} WHERE {where}", [*key.values()]).fetchone()
        return key, found

    def run(self, change: Change) -> Delta | None:
        place = change.table % len(self.schema)
        table = f"t{place}"
        spec = self.schema[place]
        key, found = self._found(place, change)
        numbered = zip(spec.columns, change.values, strict=False)
        values = {c: self._value(place, c, n) for c, n in numbered if c not in spec.filled("generated")}
        chosen = {c: value for i, (c, value) in enumerate(values.items()) if change.mask >> i & 1 and c not in spec.key}
        whole = {c: value for c, value in values.items() if c not in chosen or c not in spec.filled("default")}
        row = {"insert": {**whole, **key}, "upsert": {**chosen, **key}, "delete": {}}.get(change.op)
        if row is None:
            moved = {c: values[c] for c in spec.key if change.mask > 200 and values[c] is not None}
            row = {**chosen, **moved} or {"v": values["v"]}
        if found is None and change.op in ("update", "delete"):
            return None
        delta = Delta(table, Operation(change.op), key, row, dict(found) if found and change.told else {})
        return self._executed(place, delta, change)

    def _executed(self, place: int, delta: Delta, change: Change) -> Delta | None:
        try:
            execute(self.connection, delta)
        except sqlite3.IntegrityError:
            return None
        return self._spelled(place, delta) if change.spelled else delta

    def rows(self) -> list[list[tuple[Any, ...]]]:
        return all_rows(self.connection, self.schema)

    def _value(self, place: int, column: str, number: int) -> Any:
        if _is_text(self.schema, place, column):
            return LETTERS[number % 4]
        if column in self.schema[place].key:
            return number or 9
        return (number % 4 if column.startswith("r") else number) or None

    def _spelled(self, place: int, delta: Delta) -> Delta:
        def spelled(row: Any) -> dict[str, Any]:
            return {column: str(value) if isinstance(value, int) else value for column, value in row.items()}

        return Delta(delta.table, delta.op, spelled(delta.key), spelled(delta.row), spelled(delta.before))


def all_rows(connection: sqlite3.Connection, schema: Schema) -> list[list[tuple[Any, ...]]]:
    """Returns the rows of each table, sorted."""
    return [
        sorted((tuple(row) for row in connection.execute(f"SELECT {', '.join(spec.columns)} FROM t{place}")), key=repr)
        for place, spec in enumerate(schema)
    ]


def execute(connection: sqlite3.Connection, delta: Delta) -> None:
    """Runs one delta; raises IntegrityError if the database refuses it, or if there is no such row."""
    where = " AND ".join(f"{column} = ?" for column in delta.key)
    written = ", ".join(f"{column} = ?" for column in delta.row)
    new, found = [*delta.row.values()], [*delta.key.values()]
    if delta.op is Operation.DELETE:
        sql, values = f"DELETE FROM {delta.table} WHERE {where}", found
    elif delta.op is Operation.UPDATE:
        sql, values = f"UPDATE {delta.table} SET {written} WHERE {where}", new + found
    else:
        marks = ", ".join("?" * len(delta.row))
        sql, values = f"INSERT INTO {delta.table} ({', '.join(delta.row)}) VALUES ({marks})", new
    if delta.op is Operation.UPSERT:
        changed = [column for column in delta.row if column not in delta.key]
        action = f"UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in changed)}" if changed else "NOTHING"
        sql = f"{sql} ON CONFLICT ({', '.join(delta.key)}) DO {action}"
    if connection.execute(sql, values).rowcount != 1 and not sql.endswith("NOTHING"):
        raise sqlite3.IntegrityError("no such row")


@contextmanager
def undone(connection: sqlite3.Connection) -> Iterator[None]:
    """Takes back whatever happens within."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
