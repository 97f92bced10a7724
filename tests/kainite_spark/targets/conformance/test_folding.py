"""Folded groups leave the target as unfolded ones do: the same rows, and the same units failed for the same causes.

A source with the same constraints runs random changes on few rows. What it takes becomes units; what it refuses becomes
units that the target must refuse, too, wherever they stand. Deltas tell what they change, as a source's log does.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from kainite.log.format.entry import Outcome
from kainite.uow.delta import Delta, Operation
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.group_commit import apply_units
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.planner import Planner
from support.stores import Database, Store, Stores, apply_skipping

DDL = """
    CREATE TABLE item (
        id integer PRIMARY KEY, code integer UNIQUE, up integer REFERENCES item, v integer CHECK (v < 3),
        w integer, n integer NOT NULL, t varchar(3));
    CREATE TABLE leaf (
        a integer NOT NULL, b integer NOT NULL, item integer REFERENCES item ON DELETE CASCADE ON UPDATE CASCADE,
        w integer, PRIMARY KEY (a, b));
"""
KEYS = {"item": ("id",), "leaf": ("a", "b")}
COLUMNS = {"item": ("code", "up", "v", "w", "n", "t"), "leaf": ("item", "w")}
FILLED = 3

number = st.integers(1, 3)
value = st.none() | st.integers(0, 3)
change = st.tuples(
    st.sampled_from(["insert", "update", "update", "update", "update", "upsert", "delete"]),
    st.sampled_from(["item", "item", "leaf"]),
    st.tuples(number, st.just(1)),
    st.dictionaries(st.sampled_from(["code", "up", "v", "w", "w", "n", "t", "item"]), value, max_size=3),
    st.sampled_from([None, None, None, None, 1, 2, 4]),
    st.booleans(),
)
histories = st.lists(st.lists(change, min_size=1, max_size=3), min_size=2, max_size=12)
Change = tuple[str, str, tuple[int, int], dict[str, Any], int | None, bool]


class Source:
    """The source's database: it takes a change or refuses it, and its deltas say what was there before."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.executescript(DDL)

    def run(self, change: Change) -> tuple[Delta, bool]:
        """Returns the change's delta, and whether the source took it."""
        op, table, which, given_, moved, full = change
        key = dict(zip(KEYS[table], which, strict=False))
        where = " AND ".join(f"{column} = {value}" for column, value in key.items())
        found = self.connection.execute(f"SELECT * FROM {table} WHERE {where}").fetchone()
        before: dict[str, Any] = dict(found) if found else {}
        row = {column: value for column, value in given_.items() if column in COLUMNS[table]}
        if op == "update":
            row = {**({column: before.get(column) for column in COLUMNS[table]} if full else {}), **row}
            row |= {KEYS[table][0]: moved} if moved else {}
            row = row or {"w": 1}
        elif op != "delete":
            row = {"n": 0, **row, **key} if table == "item" else {**row, **key}
        delta = Delta(table, Operation(op), key, {} if op == "delete" else row, before)
        return delta, self._takes(delta, where)

    def _takes(self, delta: Delta, where: str) -> bool:
        row, table = delta.row, delta.table
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        assigned = ", ".join(f"{column} = ?" for column in row)
        sql = {
            Operation.INSERT: f"INSERT INTO {table} ({names}) VALUES ({marks})",
            Operation.UPDATE: f"UPDATE {table} SET {assigned} WHERE {where}",
            Operation.DELETE: f"DELETE FROM {table} WHERE {where}",
            Operation.UPSERT: f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT ({', '.join(delta.key)}) "
            f"DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in row)}",
        }[delta.op]
        try:
            return self.connection.execute(sql, list(row.values())).rowcount == 1
        except sqlite3.IntegrityError:
            return False


def units_of(store: Store, history: Sequence[list[Change]]) -> list[Unit]:
    """Returns a unit of the first rows, units of what the source took, and one of each change that it refused."""
    source = Source()
    filling: list[Change] = [("insert", "item", (n, 1), {"w": 0, "code": n}, None, False) for n in range(1, FILLED + 1)]
    listed = [[delta for change in filling for delta, _ in [source.run(change)]]]
    for changes in history:
        taken: list[Delta] = []
        for change in changes:
            delta, took = source.run(change)
            if took:
                taken.append(delta)
            else:
                listed += [taken, [delta]] if taken else [[delta]]
                taken = []
        listed += [taken] if taken else []
    return [store.unit(tid, *deltas) for tid, deltas in enumerate(listed)]


class Replay:
    """Applies units to one database again and again, each time from empty tables."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def apply(
        self, units: Sequence[Unit], options: ApplyOptions, *, skip: bool = False
    ) -> tuple[tuple[Outcome, ...], list[Any]]:
        store = self.store
        store.database.run(
            "DELETE FROM leaf; DELETE FROM kainite_applied; UPDATE item SET up = NULL; DELETE FROM item;"
        )
        store.fence = replace(store.fence, micro_batch=store.fence.micro_batch + 1)
        store.target.begin_micro_batch(store.fence)

        def apply(given: Sequence[Unit]) -> tuple[Outcome, ...]:
            return apply_units(store.session, store.fence, given, options)

        outcomes = apply_skipping(apply, units) if skip else apply(units)
        return outcomes, [store.rows(table) for table in KEYS]


def check(replay: Replay, history: Sequence[list[Change]]) -> None:
    units = units_of(replay.store, history)
    for skip in (True, False):
        for size in (3, 100):
            options = ApplyOptions(group_units=size, retry=Retry(tries=2, first=0.0))
            expected = replay.apply(units, replace(options, fold=False), skip=skip)
            assert replay.apply(units, options, skip=skip) == expected


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    path: Path = tmp_path_factory.mktemp("folding") / "target.db"
    sqlite3.connect(path).close()
    stores = Stores(Database(f"sqlite:///{path}"))
    yield Replay(stores.open(f"PRAGMA journal_mode = WAL; {DDL}"))
    stores.close()


@pytest.fixture
def on_postgresql(postgres: str) -> Iterator[Replay]:
    stores = Stores(Database(postgres))
    yield Replay(stores.open(DDL))
    stores.close()


@pytest.fixture
def on_mariadb(mariadb: str) -> Iterator[Replay]:
    stores = Stores(Database(mariadb))
    yield Replay(stores.open(DDL))
    stores.close()


_SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(_SLOW, max_examples=150)
@given(history=histories)
def test_any_history_on_sqlite(on_sqlite: Replay, history: list[list[Change]]) -> None:
    check(on_sqlite, history)


@settings(_SLOW, max_examples=15)
@given(history=histories)
def test_any_history_on_postgresql(on_postgresql: Replay, history: list[list[Change]]) -> None:
    check(on_postgresql, history)


@settings(_SLOW, max_examples=15)
@given(history=histories)
def test_any_history_on_mariadb(on_mariadb: Replay, history: list[list[Change]]) -> None:
    check(on_mariadb, history)


@pytest.mark.parametrize(
    "bad",
    [{"v": 7}, {"n": None}, {"code": 2}, {"up": 9}, {"t": "long"}, {"w": "x"}, {"w": 2**40}],
    ids=["check", "null", "unique", "parent", "length", "type", "range"],
)
def test_a_value_that_is_refused_fails_its_unit_though_the_next_one_overwrites_it(
    on_postgresql: Replay, bad: dict[str, Any]
) -> None:
    store = on_postgresql.store
    first = store.unit(0, *(store.insert("item", id=n, code=n, n=0) for n in (1, 2)))
    good = dict.fromkeys(bad, 1) if "t" not in bad else {"t": "x"}
    listed = [
        first,
        store.unit(1, store.update("item", {"id": 1}, **bad)),
        store.unit(2, store.update("item", {"id": 1}, **good)),
    ]

    outcomes, _ = on_postgresql.apply(listed, ApplyOptions(retry=Retry(tries=2, first=0.0)))

    assert [outcome.status.value for outcome in outcomes] == ["committed", "failed", "blocked"]


def test_updates_of_one_hot_row_are_one_statement(on_sqlite: Replay) -> None:
    store = on_sqlite.store
    planner = Planner(store.catalogue, {"item": 1, "leaf": 2})
    listed = [
        store.unit(n, store.update("item", {"id": 1}, {"id": 1}, w=n), store.insert("leaf", a=n, b=1, item=1, w=n))
        for n in range(100)
    ]

    assert len(list(planner.plan(listed))) > 100
    assert [(s.shape.table, len(s.deltas), s.deltas[-1].row["w"]) for s in planner.plan(listed, folded=True)] == [
        ("leaf", 100, 99),
        ("item", 1, 99),
    ]


TWO_LONG = """
    CREATE TABLE doc (id integer PRIMARY KEY, a text, b text);
    CREATE INDEX ON doc (a, b);
"""


def test_two_values_that_an_index_cannot_hold_together_are_not_dropped(postgres: str) -> None:
    stores = Stores(Database(postgres))
    store = stores.open(TWO_LONG)
    wild = random.Random(4)
    long = ["".join(chr(wild.randint(0x10000, 0x2FFFF)) for _ in range(600)) for _ in range(2)]
    units = [
        store.unit(1, store.insert("doc", id=1, a="x", b="y")),
        store.unit(2, store.update("doc", {"id": 1}, a=long[0], b=long[1])),
        store.unit(3, store.update("doc", {"id": 1}, a="x", b="y")),
    ]
    outcomes = store.apply(*units)
    stores.close()
    assert [outcome.status.value for outcome in outcomes] == ["committed", "failed", "blocked"]
    assert "index row size" in (outcomes[1].cause or "")


@pytest.mark.parametrize("right", ["INSERT", "UPDATE", "UPDATE (w)"])
def test_a_change_that_the_role_may_not_make_is_not_folded_away(postgres: str, right: str) -> None:
    role = f"half_{conninfo_to_dict(postgres)['dbname']}"
    others = {"INSERT": "SELECT, UPDATE", "UPDATE": "SELECT, INSERT", "UPDATE (w)": "SELECT, INSERT, UPDATE (id, n)"}
    database = Database(postgres)
    database.run(
        f"{DDL} CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}; GRANT {others[right]} ON item TO {role}"
    )
    stores = Stores(Database(f"{postgres}&user={role}"))
    try:
        store = stores.open("SELECT")
        units = [
            store.unit(1, store.insert("item", id=1, n=0, w=1)),
            store.unit(2, store.update("item", {"id": 1}, w=2)),
        ]
        expected = ["failed", "blocked"] if right == "INSERT" else ["committed", "failed"]
        assert store.statuses(*units) == expected
    finally:
        stores.close()
        database.run(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
