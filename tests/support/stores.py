"""One interface to targets of every kind, for the tests that run on all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.settings import ApplySettings
from kainite.uow.catalogue.load import load_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.group_commit import apply_units
from kainite_spark.targets.contract import Target, TargetSession, Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opening import open_target
from support.mariadb_server import rows_of, run_script

# Five levels (region, customer, orders, order_line, shipment), a self-reference, composite keys,
# a unique column, a check, a table without a primary key.
SHOP = """
    CREATE TABLE region (id bigint PRIMARY KEY, name varchar(20) NOT NULL);
    CREATE TABLE customer (
        id bigint PRIMARY KEY, region_id bigint NOT NULL REFERENCES region, email varchar(40) UNIQUE,
        referrer bigint REFERENCES customer, credit integer NOT NULL DEFAULT 100 CHECK (credit >= 0));
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customer, note text);
    CREATE TABLE order_line (
        order_id bigint REFERENCES orders, line_no integer, qty integer NOT NULL, PRIMARY KEY (order_id, line_no));
    CREATE TABLE shipment (
        id bigint PRIMARY KEY, order_id bigint NOT NULL, line_no integer NOT NULL,
        FOREIGN KEY (order_id, line_no) REFERENCES order_line);
    CREATE TABLE audit (what text, at bigint);
"""


DATABASES = pytest.mark.parametrize("database", ["postgresql", "sqlite", "mariadb"], indirect=True)
"""Runs a test on the databases alone: for what Kainite does in a database by itself, and a loader may do otherwise."""

DEFERRING = pytest.mark.parametrize("database", ["postgresql", "sqlite"], indirect=True)
"""Runs a test on the databases that can check foreign keys at the commit."""


class Database:
    """Direct access to the database under test, without Kainite.

    Args:
        url: the database.
        target: the URL by which Kainite reaches the database, if it is another one.
    """

    def __init__(self, url: str, target: str | None = None) -> None:
        self.url = url
        self.target = target or url
        self.kind = url.partition(":")[0]

    def run(self, script: str) -> None:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self._path)) as connection:
                connection.executescript(script)
        elif self.kind == "mariadb":
            run_script(self.url, script)
        else:
            with psycopg.connect(self.url) as server:
                server.execute(script)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self._path)) as connection:
                return connection.execute(query).fetchall()
        if self.kind == "mariadb":
            return rows_of(self.url, query)
        with psycopg.connect(self.url) as server:
            return server.execute(query).fetchall()

    @property
    def _path(self) -> str:
        return self.url.removeprefix("sqlite:///")


def apply_skipping(apply: Callable[[Sequence[Unit]], Iterable[Outcome]], units: Sequence[Unit]) -> tuple[Outcome, ...]:
    """Applies units as the driver does with ``onUowFailure=skip``: what a failed unit blocks goes again without it."""
    outcomes = {outcome.tid: outcome for outcome in apply(units)}
    while blocked := [unit for unit in units if outcomes[unit.tid].status is UnitStatus.BLOCKED]:
        outcomes |= {outcome.tid: outcome for outcome in apply(blocked)}
    return tuple(outcomes[unit.tid] for unit in units)


@dataclass
class Store:
    """A prepared target with one session, and short ways to write deltas."""

    database: Database
    catalogue: Catalogue
    target: Target
    session: TargetSession
    signatures: Signatures
    fence: Fence = field(default_factory=lambda: Fence("0", 1, 0))

    def insert(self, table: str, /, **row: Any) -> Delta:
        return Delta(table, Operation.INSERT, self._key(table, row), row, {})

    def upsert(self, table: str, /, **row: Any) -> Delta:
        return Delta(table, Operation.UPSERT, self._key(table, row), row, {})

    def update(self, table: str, key: dict[str, Any], before: dict[str, Any] | None = None, /, **row: Any) -> Delta:
        return Delta(table, Operation.UPDATE, key, row, before or {})

    def delete(self, table: str, before: dict[str, Any] | None = None, /, **key: Any) -> Delta:
        return Delta(table, Operation.DELETE, key, {}, before or {})

    def unit(self, tid: int, *deltas: Delta) -> Unit:
        written, read = self.signatures.of(deltas)
        return Unit(tid, f"T-{tid}", deltas, written, read)

    def apply(self, *units: Unit, stops: bool = False, group_units: int = 500) -> tuple[Outcome, ...]:
        options = ApplyOptions(stops, group_units, retry=Retry(tries=3, first=0.01))
        return apply_units(self.session, self.fence, units, options)

    def statuses(self, *units: Unit, stops: bool = False, group_units: int = 500) -> list[str]:
        return [outcome.status.value for outcome in self.apply(*units, stops=stops, group_units=group_units)]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(self.database.rows(f"SELECT * FROM {table}"), key=repr)

    def acknowledged(self) -> list[int]:
        return [tid for (tid,) in self.database.rows("SELECT transaction_id FROM kainite_applied ORDER BY 1")]

    def _key(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        return {column: row[column] for column in self.catalogue.tables[table].primary_key}


class Stores:
    """Opens stores on one database, and closes them all at the end."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._sessions: list[TargetSession] = []
        self._targets: list[Target] = []

    def open(self, ddl: str = SHOP, schemas: tuple[str, ...] = (), apply: ApplySettings | None = None) -> Store:
        self.database.run(ddl)
        # A loader cannot be asked for its tables; the database behind it can.
        catalogue = load_catalogue(None, self.database.target, schemas) or reflect(self.database.url, schemas)
        target = open_target(self.database.target, catalogue, apply=apply)
        self._targets.append(target)
        target.prepare("0", catalogue)
        target.raise_generation("0", 1)
        target.begin_micro_batch(Fence("0", 1, 0))
        return Store(self.database, catalogue, target, self.session(target), Signatures(catalogue))

    def session(self, target: Target) -> TargetSession:
        self._sessions.append(target.connect())
        return self._sessions[-1]

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        for target in self._targets:
            target.close()
