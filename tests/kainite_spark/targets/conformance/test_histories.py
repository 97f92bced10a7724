"""Random histories: a source runs them, the target must end as the source did, in groups of any size.

The source is a SQLite database of its own, with the same constraints; what it refuses does not
happen. Its deltas carry ``before``, as a source's log does. Into a history some units are mixed
that no target can take. They fail; the rest must not notice, in whatever groups it is applied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kainite.log.format.entry import Outcome
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from support.loaders import documented_loader
from support.stores import Database, Store, Stores, apply_skipping

TABLES = ("node", "leaf", "tag")
DDL = """
    CREATE TABLE node (
        id integer PRIMARY KEY, code integer UNIQUE, up integer REFERENCES node, v integer CHECK (v >= 0));
    CREATE TABLE leaf (
        a integer NOT NULL, b integer NOT NULL, node integer NOT NULL REFERENCES node, v integer CHECK (v >= 0),
        PRIMARY KEY (a, b));
    CREATE TABLE tag (id integer PRIMARY KEY, code integer REFERENCES node (code), v integer CHECK (v >= 0));
"""
KEYS = {"node": ("id",), "leaf": ("a", "b"), "tag": ("id",)}
COLUMNS = {"node": ("id", "code", "up", "v"), "leaf": ("a", "b", "node", "v"), "tag": ("id", "code", "v")}

small = st.integers(1, 4)
maybe = st.none() | small
Change: TypeAlias = tuple[str, str, tuple[int | None, ...], tuple[int | None, ...], bool]


@dataclass(frozen=True)
class Poison:
    """A unit that every target refuses, since its row breaks a CHECK."""

    table: str
    key: tuple[int, int]


def changes() -> st.SearchStrategy[Change]:
    """Draws steps: operation, table, which row, new values, whether the delta has the changed columns alone."""
    values = st.tuples(small, maybe, maybe, st.integers(0, 3))
    operation = st.sampled_from(["insert", "insert", "update", "update", "delete", "upsert"])
    return st.tuples(operation, st.sampled_from(TABLES), st.tuples(small, small), values, st.booleans())


poisons = st.builds(Poison, st.sampled_from(TABLES), st.tuples(small, small))
histories = st.lists(st.one_of(st.lists(changes(), min_size=1, max_size=6), poisons), min_size=1, max_size=12)


class Source:
    """The source database: runs changes, and tells the deltas of those that it took."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.executescript(DDL)

    def run(self, change: Change) -> Delta | None:
        op, table, which, values, sparse = change
        key = dict(zip(KEYS[table], which, strict=False))
        where = " AND ".join(f"{column} = {value}" for column, value in key.items())
        found = self.connection.execute(f"SELECT * FROM {table} WHERE {where}").fetchone()
        before: dict[str, Any] = dict(found) if found else {}
        row: dict[str, Any] = {**dict(zip(COLUMNS[table], values, strict=False)), **({} if op == "update" else key)}
        if not before and op in ("update", "delete"):
            return None
        if op == "delete":
            row, statement = {}, f"DELETE FROM {table} WHERE {where}"
        elif op == "update" or (op == "upsert" and before):
            statement = f"UPDATE {table} SET {', '.join(f'{c} = {_sql(v)}' for c, v in row.items())} WHERE {where}"
        else:
            statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(map(_sql, row.values()))})"
        try:
            self.connection.execute(statement)
        except sqlite3.IntegrityError:
            return None
        if sparse and op == "update":
            row = {column: value for column, value in row.items() if value != before[column]} or row
        return Delta(table, Operation(op), key, row, before)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.connection.execute(f"SELECT * FROM {table}")), key=repr)


def _sql(value: object) -> str:
    return "NULL" if value is None else str(value)


def units_of(store: Store, source: Source, history: Sequence[list[Change] | Poison]) -> list[Unit]:
    units = []
    for tid, entry in enumerate(history):
        if isinstance(entry, Poison):
            deltas = [_poison(entry)]
        else:
            deltas = [delta for change in entry if (delta := source.run(change))]
        units.append(store.unit(tid, *deltas))
    return units


def _poison(poison: Poison) -> Delta:
    key = dict(zip(KEYS[poison.table], poison.key, strict=False))
    return Delta(poison.table, Operation.UPDATE, key, {"v": -1}, {})


@dataclass
class Replay:
    """Applies histories to one database again and again, each time from empty tables."""

    store: Store

    def apply(self, units: Sequence[Unit], group_units: int, *, skip: bool = False) -> tuple[list[str], list[Any]]:
        script = "; ".join(f"DELETE FROM {table}" for table in ("tag", "leaf", "kainite_applied"))
        self.store.database.run(f"{script}; UPDATE node SET up = NULL; DELETE FROM node;")
        self.store.fence = replace(self.store.fence, micro_batch=self.store.fence.micro_batch + 1)
        self.store.target.begin_micro_batch(self.store.fence)

        def apply(given: Sequence[Unit]) -> tuple[Outcome, ...]:
            return self.store.apply(*given, group_units=group_units)

        outcomes = apply_skipping(apply, units) if skip else apply(units)
        statuses = [outcome.status.value for outcome in outcomes]
        return statuses, [self.store.rows(table) for table in TABLES]


@pytest.fixture(scope="module")
def sqlite_replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    path: Path = tmp_path_factory.mktemp("histories") / "target.db"
    sqlite3.connect(path).close()
    stores = Stores(Database(f"sqlite:///{path}"))
    yield Replay(stores.open(f"PRAGMA journal_mode = WAL; {DDL}"))
    stores.close()


@pytest.fixture
def loader_replay(tmp_path: Path) -> Iterator[Replay]:
    path = tmp_path / "target.db"
    sqlite3.connect(path).close()
    stores = Stores(Database(f"sqlite:///{path}", documented_loader(tmp_path, path)))
    yield Replay(stores.open(f"PRAGMA journal_mode = WAL; {DDL}"))
    stores.close()


@pytest.fixture
def postgres_replay(postgres: str) -> Iterator[Replay]:
    stores = Stores(Database(postgres))
    yield Replay(stores.open(DDL))
    stores.close()


@pytest.fixture
def mariadb_replay(mariadb: str) -> Iterator[Replay]:
    stores = Stores(Database(mariadb))
    yield Replay(stores.open(DDL))
    stores.close()


def check(replay: Replay, history: Sequence[list[Change] | Poison]) -> None:
    source = Source()
    units = units_of(replay.store, source, history)
    poisoned = {tid for tid, entry in enumerate(history) if isinstance(entry, Poison)}
    expected = ["failed" if unit.tid in poisoned else "committed" for unit in units]
    for group_units in (1, 3, 100):
        statuses, rows = replay.apply(units, group_units, skip=True)
        assert statuses == expected
        assert rows == [source.rows(table) for table in TABLES]
    one_by_one = replay.apply(units, 1)
    assert replay.apply(units, 100) == one_by_one
    assert replay.apply(units, 4) == one_by_one
    again = replay.store.statuses(*units)
    assert again == one_by_one[0]


_SLOW_START = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@settings(_SLOW_START, max_examples=100)
@given(history=histories)
def test_any_history_in_groups_of_any_size_on_sqlite(
    sqlite_replay: Replay, history: list[list[Change] | Poison]
) -> None:
    check(sqlite_replay, history)


@settings(_SLOW_START, max_examples=15)
@given(history=histories)
def test_any_history_in_groups_of_any_size_on_postgresql(
    postgres_replay: Replay, history: list[list[Change] | Poison]
) -> None:
    check(postgres_replay, history)


@settings(_SLOW_START, max_examples=15)
@given(history=histories)
def test_any_history_in_groups_of_any_size_on_mariadb(
    mariadb_replay: Replay, history: list[list[Change] | Poison]
) -> None:
    check(mariadb_replay, history)


@settings(_SLOW_START, max_examples=15)
@given(history=histories)
def test_any_history_in_groups_of_any_size_through_a_loader(
    loader_replay: Replay, history: list[list[Change] | Poison]
) -> None:
    check(loader_replay, history)


def test_the_source_order_alone_gives_the_same_tables(sqlite_replay: Replay) -> None:
    change: list[Change] = [
        ("insert", "node", (1, 1), (1, 1, None, 0), False),
        ("insert", "leaf", (1, 2), (1, 2, 1, 0), False),
    ]
    source = Source()
    (unit,) = units_of(sqlite_replay.store, source, [change])
    sqlite_replay.apply([], 1)
    sqlite_replay.store.session.apply_in_source_order(sqlite_replay.store.fence, unit)
    assert [sqlite_replay.store.rows(table) for table in TABLES] == [source.rows(table) for table in TABLES]
