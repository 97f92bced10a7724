"""Schemas and histories of transactions drawn from a seed, as SQL for PostgreSQL.

A schema has tables with keys and columns of many types, defaults, generated columns, identities, collations, domains,
checks, unique keys, foreign keys with actions, also to the table itself, partitions, and triggers. A history changes
rows, and keys. What the source refuses is not in it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import psycopg

from support.random_triggers import TALLY, RandomTrigger, Triggers
from support.type_values import MADE, Kind, basic, made

_KEYS: Final = (
    "integer", "bigint", "text", "varchar(12)", "uuid", "date", "timestamptz", "numeric", "numeric(20,5)", "bytea",
    "character(12)", "jsonb", "interval", "double precision", "somewhere.mood", "counted", "boolean", "int4range",
    "inet", "pair",
)  # fmt: skip
_ACTIONS: Final = ("NO ACTION", "NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT")
_COLLATIONS: Final = ("", "", ' COLLATE "C"', ' COLLATE "POSIX"')
_REFUSED: Final = (psycopg.IntegrityError, psycopg.DataError)
_COLLATED: Final = ("text", "varchar(12)", "character(12)")
_RANGES: Final = {"integer": "0", "bigint": "0", "date": "DATE '2026-11-23'", "text": "'a'"}
"""Where the ranges of two partitions meet, for types of keys."""


@dataclass(frozen=True)
class RandomColumn:
    """A column.

    Attributes:
        name: its name, which may need quotes; quoted.
        kind: its type.
        rest: what stands behind the type.
        given: whether an insert may name it.
        required: whether an insert must name it.
        parent: the table and column that it names by a foreign key.
    """

    name: str
    kind: Kind
    rest: str = ""
    given: bool = True
    required: bool = False
    parent: tuple[str, str] | None = None

    @property
    def sql(self) -> str:
        return f"{self.name} {self.kind.type}{self.rest}"


@dataclass
class RandomTable:
    """A table; ``keys`` are the columns of its primary key."""

    name: str
    columns: list[RandomColumn]
    keys: list[RandomColumn]
    constraints: list[str] = field(default_factory=list)
    identity: str = "DEFAULT"
    partitioned: str = ""
    bounds: Sequence[str] = ()

    @property
    def sql(self) -> str:
        parts = [column.sql for column in self.columns]
        parts += [f"PRIMARY KEY ({', '.join(key.name for key in self.keys)})", *self.constraints]
        partitions = {self.partition(place): bound for place, bound in enumerate(self.bounds)}
        return "; ".join((
            f"CREATE TABLE {self.name} ({', '.join(parts)}){self.partitioned}",
            *(f"CREATE TABLE {name} PARTITION OF {self.name} {bound}" for name, bound in partitions.items()),
            *(f"ALTER TABLE {name} REPLICA IDENTITY {self.identity}" for name in (self.name, *partitions)),
        ))  # fmt: skip

    def partition(self, place: int) -> str:
        """Returns the name of a partition, quoted."""
        return f'"{self.name.strip(chr(34))} {place}"'


class RandomSchema:
    """The tables of a seed; each has its parents before it."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._kinds = {kind.type: kind for kind in (*basic(), *made())}
        self.tables: list[RandomTable] = []
        for number in range(chance.randint(2, 4)):
            self.tables.append(self._table(chance.choice((f"t{number}", f'"Table {number}%"'))))
        self.triggers = self._triggers()
        self.copies_triggers = chance.random() < 0.5
        # An enum's hash is made of its oid, so another database has the row in another partition.
        by_enum = any("HASH" in table.partitioned and "mood" in table.keys[0].kind.type for table in self.tables)
        self.by_root = chance.random() < 0.5 or by_enum

    @property
    def scripts(self) -> Sequence[str]:
        """Returns what makes the tables."""
        return [MADE, "CREATE TABLE history (n integer PRIMARY KEY)", TALLY, *(table.sql for table in self.tables)]

    @property
    def repeatable(self) -> Sequence[str]:
        """Returns the tables with triggers that may all fire in a replica, too; their names are not quoted."""
        named = {trigger.table for trigger in self.triggers}
        others = {trigger.table for trigger in self.triggers if not trigger.repeatable}
        return sorted(name.strip('"') for name in named - others)

    def _triggers(self) -> Sequence[RandomTrigger]:
        plain = {
            table.name: [c for c in table.columns if c.given and c.parent is None and c not in table.keys]
            for table in self.tables
        }
        made = Triggers(self._chance, plain)
        return [
            trigger
            for table in self.tables
            for trigger in made.of_table(table.name, table.columns, partitioned=bool(table.bounds))
        ]

    def _table(self, name: str) -> RandomTable:
        chance = self._chance
        keys = [self._key(f"k{number}") for number in range(chance.choice((1, 1, 1, 2)))]
        others = [
            self._column(chance.choice((f"c{number}", f'"C {number}"'))) for number in range(chance.randint(1, 5))
        ]
        table = RandomTable(name, [*keys, *others, *self._computed(keys + others)], keys)
        if all(column.name != "g" for column in table.columns):  # pgoutput does not publish generated columns
            table.identity = chance.choice(("DEFAULT", "DEFAULT", "FULL"))
        if chance.random() < 0.3:
            self._part(table)
        for number in range(chance.choice((0, 1, 1, 2))):
            self._add_parent(table, f"p{number}")
        self._add_constraints(table, others)
        chance.shuffle(table.columns)
        return table

    def _part(self, table: RandomTable) -> None:
        """Cuts the table in partitions, by the first column of its key."""
        key = table.keys[0]
        middle = _RANGES.get(key.kind.type)
        if middle is not None and self._chance.random() < 0.5:
            table.partitioned = f" PARTITION BY RANGE ({key.name})"
            table.bounds = (f"FOR VALUES FROM (MINVALUE) TO ({middle})", "DEFAULT")
        else:
            parts = self._chance.choice((1, 2, 3))
            table.partitioned = f" PARTITION BY HASH ({key.name})"
            table.bounds = [f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {place})" for place in range(parts)]

    def _key(self, name: str) -> RandomColumn:
        chance = self._chance
        kind = self._kinds[chance.choice(("integer", "bigint", *_KEYS))]
        if kind.type in ("integer", "bigint") and chance.random() < 0.4:
            how = chance.choice(("ALWAYS", "BY DEFAULT"))
            return RandomColumn(name, kind, f" GENERATED {how} AS IDENTITY", given=how != "ALWAYS")
        return RandomColumn(name, kind, self._collation(kind), required=True)

    def _column(self, name: str) -> RandomColumn:
        chance = self._chance
        kind = chance.choice(list(self._kinds.values()))
        collation = self._collation(kind)
        if chance.random() < 0.3:
            null = chance.choice((" NOT NULL", ""))
            return RandomColumn(name, kind, f"{collation} DEFAULT {kind.value(chance)}{null}")
        required = chance.random() < 0.3
        return RandomColumn(name, kind, f"{collation}{' NOT NULL' if required else ''}", required=required)

    def _collation(self, kind: Kind) -> str:
        return self._chance.choice(_COLLATIONS) if kind.type in _COLLATED else ""

    def _computed(self, columns: Sequence[RandomColumn]) -> Iterator[RandomColumn]:
        """Yields a generated column, and an identity beside the key."""
        chance = self._chance
        if chance.random() < 0.3:
            base = chance.choice(columns).name
            made_of = f" GENERATED ALWAYS AS (num_nulls({base}) + 1) STORED"
            yield RandomColumn("g", self._kinds["integer"], made_of, given=False)
        if chance.random() < 0.2 and not any("IDENTITY" in column.rest for column in columns):
            how = chance.choice(("ALWAYS", "BY DEFAULT"))
            yield RandomColumn("i", self._kinds["bigint"], f" GENERATED {how} AS IDENTITY", given=how != "ALWAYS")

    def _add_parent(self, table: RandomTable, name: str) -> None:
        """Adds a foreign key to a table with a key of one column, perhaps this one."""
        chance = self._chance
        parents = [parent for parent in (*self.tables, table) if len(parent.keys) == 1]
        if not parents:
            return
        parent = chance.choice(parents)
        named = parent.keys[0]
        collation = named.rest if "COLLATE" in named.rest else ""
        column = RandomColumn(name, named.kind, collation, parent=(parent.name, named.name))
        late = chance.choice(("", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"))
        table.columns.append(column)
        table.constraints.append(
            f"FOREIGN KEY ({name}) REFERENCES {parent.name} ({named.name})"
            f" ON DELETE {chance.choice(_ACTIONS)} ON UPDATE {chance.choice(_ACTIONS)}{late}"
        )

    def _add_constraints(self, table: RandomTable, columns: Sequence[RandomColumn]) -> None:
        chance = self._chance
        for column in columns:
            if column.kind.ordered and not table.bounds and chance.random() < 0.2:
                table.constraints.append(f"UNIQUE ({column.name})")
        if chance.random() < 0.2:
            table.constraints.append(f"CHECK (num_nulls({chance.choice(columns).name}) < 2)")


class RandomHistory:
    """Runs transactions on a source with the tables of a schema; each one also inserts its number into ``history``."""

    def __init__(self, schema: RandomSchema, chance: random.Random, connection: psycopg.Connection) -> None:
        self._schema = schema
        self._chance = chance
        self._connection = connection
        self._number = 0

    def run(self, transactions: int) -> int:
        """Runs transactions until so many have committed; returns their number."""
        committed = 0
        while committed < transactions:
            committed += self._transaction()
        return committed

    def _transaction(self) -> bool:
        self._number += 1
        try:
            with self._connection.transaction():
                self._execute(f"INSERT INTO history VALUES ({self._number})")
                for _ in range(self._chance.randint(1, 6)):
                    self._change()
        except psycopg.IntegrityError:  # a deferred foreign key
            return False
        return True

    def _change(self) -> None:
        table = self._chance.choice(self._schema.tables)
        made = self._chance.choice((self._insert, self._insert, self._insert, self._update, self._update, self._delete))
        with suppress(*_REFUSED), self._connection.transaction():
            self._execute(made(table))

    def _insert(self, table: RandomTable) -> str:
        chance = self._chance
        named = [c for c in table.columns if c.required or (c.given and chance.random() < 0.7)]
        if not named:
            return f"INSERT INTO {table.name} DEFAULT VALUES"
        values = ", ".join(self._value(column) for column in named)
        return f"INSERT INTO {table.name} ({', '.join(c.name for c in named)}) VALUES ({values})"

    def _update(self, table: RandomTable) -> str:
        chance = self._chance
        fixed = table.keys if table.bounds and self._is_named(table) else []
        likely = {column.name: 0.2 if column in table.keys else 0.5 for column in table.columns}
        changed = [c for c in table.columns if c.given and chance.random() < likely[c.name] and c not in fixed]
        if not changed:
            return self._delete(table)
        assigned = ", ".join(f"{column.name} = {self._value(column)}" for column in changed)
        return f"UPDATE {table.name} SET {assigned} WHERE {self._some_row(table)}"

    def _is_named(self, table: RandomTable) -> bool:
        """Returns whether a foreign key names the table; its rows then do not move between partitions.

        The source sends such a move as a delete and an insert (docs/extract.md).
        """
        return any(c.parent is not None and c.parent[0] == table.name for t in self._schema.tables for c in t.columns)

    def _delete(self, table: RandomTable) -> str:
        return f"DELETE FROM {table.name} WHERE {self._some_row(table)}"

    def _value(self, column: RandomColumn) -> str:
        chance = self._chance
        if column.parent is not None and chance.random() < 0.9:
            table, name = column.parent
            return f"(SELECT {name} FROM {table} AS x ORDER BY x::text OFFSET {chance.randrange(5)} LIMIT 1)"
        if not column.required and chance.random() < 0.15:
            return "NULL"
        return column.kind.value(chance)

    def _some_row(self, table: RandomTable) -> str:
        place = self._chance.randrange(5)
        most = self._chance.choice((1, 1, 2))
        return f"ctid = ANY(ARRAY(SELECT ctid FROM {table.name} AS x ORDER BY x::text OFFSET {place} LIMIT {most}))"

    def _execute(self, script: str) -> psycopg.Cursor:
        return self._connection.execute(script.encode())
