"""A source's tables, generated, in SQLite's SQL; nothing here is Kainite's code.

Every table has a key and a value ``v``. What else there may be: a key of two columns, a key that ignores case, a
second unique key ``code``, foreign keys with and without actions, also to the table itself and to ``code``; a second
name, as a partition has. What comes into being only with a later transaction has that transaction's number as
``since``: a table, a column ``w``, a foreign key on a column ``q`` that was there before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key of one column to a column of a table, ``id`` or ``code``, with its actions."""

    column: str
    parent: str
    named: str = "id"
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"
    since: int = 0


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table.

    Attributes:
        key: its columns: ``id``, or ``id`` and ``n``.
        folded: the key is text that ignores case.
        unique: ``code`` is there, a unique key.
        references: its foreign keys, whenever they come.
        since: the table comes with this transaction.
        wide: the column ``w`` comes with this transaction; None for never.
        parted: deltas may call it by a second name.
    """

    name: str
    key: tuple[str, ...] = ("id",)
    folded: bool = False
    unique: bool = False
    references: tuple[Reference, ...] = ()
    since: int = 0
    wide: int | None = None
    parted: bool = False

    @property
    def part(self) -> str:
        """Returns the second name."""
        return f"{self.name}_part"

    def declared(self, number: int) -> tuple[Reference, ...]:
        """Returns the foreign keys that there are when transaction ``number`` runs."""
        return tuple(reference for reference in self.references if reference.since <= number)

    def columns(self, number: int) -> tuple[str, ...]:
        """Returns the columns that there are when transaction ``number`` runs."""
        more = ("code",) if self.unique else ()
        wide = ("w",) if self.wide is not None and self.wide <= number else ()
        return (*self.key, "v", *more, *(reference.column for reference in self.references), *wide)


Tables = dict[str, SourceTable]


def ddl(tables: Tables, table: SourceTable, number: int, *, name: str = "") -> str:
    """Returns what creates the table as it is when transaction ``number`` runs."""
    columns = [f"{column} {_type(tables, table, column)}" for column in table.columns(number)]
    keys = [f"PRIMARY KEY ({', '.join(table.key)})"]
    keys += [
        f"FOREIGN KEY ({r.column}) REFERENCES {r.parent} ({r.named}) ON DELETE {r.on_delete} ON UPDATE {r.on_update}"
        for r in table.declared(number)
    ]
    return f"CREATE TABLE {name or table.name} ({', '.join([*columns, *keys])});"


def rebuilding(tables: Tables, table: SourceTable, number: int) -> str:
    """Returns what gives a table the foreign keys and columns that it has from transaction ``number`` on."""
    kept = ", ".join(table.columns(number - 1))
    return (
        f"PRAGMA foreign_keys = OFF; BEGIN; {ddl(tables, table, number, name='rebuilt')}"
        f"INSERT INTO rebuilt ({kept}) SELECT {kept} FROM {table.name};"
        f"DROP TABLE {table.name}; ALTER TABLE rebuilt RENAME TO {table.name}; COMMIT; PRAGMA foreign_keys = ON;"
    )


def _type(tables: Tables, table: SourceTable, column: str) -> str:
    if column == "id" and table.folded:
        return "text COLLATE NOCASE NOT NULL"
    if column in table.key:
        return "bigint NOT NULL"
    if column == "code":
        return "bigint UNIQUE"
    named = next((r for r in table.references if r.column == column), None)
    text = named is not None and named.named == "id" and tables[named.parent].folded
    return "text" if text else "bigint"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the tables: ``what`` (column, table, key) comes with transaction ``number``; when the target has it.

    ``at`` is in seconds; a key comes to the target between two transactions of the source, which waits for it.
    """

    what: str
    number: int
    at: float


def generated(rng: Random, changes: tuple[Change, ...], *, rich: bool, prefix: str = "") -> Tables:
    """Returns tables, parents first.

    Args:
        rng: chooses.
        changes: of the tables.
        rich: with the kinds of keys and actions that are rare in practice.
        prefix: what all names begin with.
    """
    tables: Tables = {}
    for number in range(rng.choice((1, 2, 2, 3, 4))):
        name = f"{prefix}t{number}"
        tables[name] = _table(rng, tables, name, rich=rich)
    for change in changes:
        _plan(rng, tables, change, rich=rich, prefix=prefix)
    return tables


def _table(rng: Random, tables: Tables, name: str, *, rich: bool) -> SourceTable:
    folded = rich and rng.random() < 0.15
    table = SourceTable(
        name,
        key=("id", "n") if rich and not folded and rng.random() < 0.2 else ("id",),
        folded=folded,
        unique=rng.random() < 0.4,
        parted=rich and rng.random() < 0.2,
    )
    references: list[Reference] = []
    for column in ("p", "o"):
        if tables and rng.random() < (0.8 if column == "p" else 0.15 * rich):
            references += _reference(rng, [*tables.values()], column, rich=rich)
    if rng.random() < 0.3:
        references += _reference(rng, [table], "up", rich=rich)
    return replace(table, references=tuple(references))


def _reference(rng: Random, parents: list[SourceTable], column: str, *, rich: bool, since: int = 0) -> list[Reference]:
    parent = rng.choice(parents)
    named = [column for column in ("id", "code") if (column == "code" and parent.unique) or parent.key == (column,)]
    if not named:
        return []
    name = rng.choice(named) if rich else named[0]
    on_delete = rng.choices(("NO ACTION", "CASCADE", "SET NULL"), (6, 4, 2 * rich))[0]
    on_update = rng.choice(("NO ACTION", "CASCADE", "SET NULL")) if rich else "NO ACTION"
    on_delete = on_delete if column != "up" or rich else "NO ACTION"
    return [Reference(column, parent.name, name, on_delete, on_update, since)]


def _plan(rng: Random, tables: Tables, change: Change, *, rich: bool, prefix: str) -> None:
    """Lets a change happen to one of the tables."""
    if change.what == "key" and len(tables) == 1:
        tables[f"{prefix}t1"] = SourceTable(f"{prefix}t1")
    name = rng.choice(sorted(tables)[change.what == "key" :])
    table = tables[name]
    match change.what:
        case "column" if table.wide is None:
            tables[name] = replace(table, wide=change.number)
        case "table":
            new = SourceTable(f"{prefix}t{len(tables)}", since=change.number)
            parents = sorted({r.parent for t in tables.values() for r in t.declared(0)})
            if parents and rng.random() < 0.6:  # a first foreign key to a table would be a new key of that table
                more = _reference(rng, [tables[rng.choice(parents)]], "p", rich=False)
                new = replace(new, references=tuple(r for r in more if r in _like(tables, r)))
            tables[new.name] = new
        case "key" if not table.since:
            others = [other for other in tables.values() if not other.since and other.name < name]  # no cycle
            more = _reference(rng, others, "q", rich=rich, since=change.number) if others else []
            if more and not any(r.column == "q" for r in table.references) and table.wide is None:
                cascading = replace(more[0], on_delete="CASCADE")
                tables[name] = replace(table, references=(*table.references, cascading), wide=change.number)


def _like(tables: Tables, wanted: Reference) -> list[Reference]:
    """Returns the reference if some table has one like it already."""
    known = {(r.parent, r.named, r.on_delete) for t in tables.values() for r in t.declared(0)}
    return [wanted] if (wanted.parent, wanted.named, wanted.on_delete) in known else []
