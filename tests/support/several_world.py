"""A log, two targets and an apply job for each of them, for tests of several targets."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kainite.log.contract import LogStore
from kainite.settings import ApplySettings
from kainite.settings.assignment import TableAssignment
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.several import merged, only
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta, Operation
from kainite.uow.signing import Signing
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.runner import Runner
from kainite_spark.targets.contract import Target
from kainite_spark.targets.opening import open_target
from support.inline_runner import InlineRunner
from support.main_log import MainLog
from support.stores import Database

TARGETS: Final = TableAssignment((("shop", ()), ("crm", ("contact", "visit"))))
TABLES: Final[Mapping[str, str]] = {
    "shop": "CREATE TABLE item (id bigint PRIMARY KEY, v bigint CHECK (v >= 0)); CREATE TABLE sold (what varchar(40));",
    "crm": "CREATE TABLE contact (id bigint PRIMARY KEY, v bigint CHECK (v >= 0));"
    " CREATE TABLE visit (what varchar(40));",
}
"""Of each target a table with a key, and one without: a unit that is applied twice stands in that one twice."""

NOTES: Final[Mapping[str, str]] = {"shop": "sold", "crm": "visit"}


@dataclass
class OneTarget:
    """One of the targets, with Kainite's view of it and a direct one."""

    name: str
    database: Database
    catalogue: Catalogue
    target: Target

    def rows(self) -> dict[int, int]:
        table = "item" if self.name == "shop" else "contact"
        return dict(self.database.rows(f"SELECT id, v FROM {table}"))

    def noted(self) -> list[str]:
        """Returns the names that units noted; each applied unit stands there once."""
        return sorted(what for (what,) in self.database.rows(f"SELECT what FROM {NOTES[self.name]}"))


class SeveralWorld:
    """One log partition and the targets ``shop`` and ``crm``.

    Args:
        store: the log's store.
        databases: an empty database for each target; one alone has the tables of both.
        targets: which there are.
    """

    def __init__(self, store: LogStore, databases: Mapping[str, Database], targets: TableAssignment = TARGETS) -> None:
        self.store = store
        self.stop = threading.Event()
        tables = {name: TABLES[name] if len(databases) > 1 else "".join(TABLES.values()) for name in databases}
        self.targets = {name: _opened(name, databases[name], tables[name], targets) for name in targets.names}
        self.log = MainLog(store, Signing(merged(one.catalogue for one in self.targets.values())))
        self.log.assign(targets)

    @property
    def shop(self) -> OneTarget:
        return self.targets["shop"]

    @property
    def crm(self) -> OneTarget:
        return self.targets["crm"]

    def job(
        self, name: str, *, store: LogStore | None = None, target: Any = None, runner: Runner | None = None, **more: Any
    ) -> ApplyJob:
        store, target = store or self.store, target or self.targets[name].target
        settings = ApplySettings(**({"lease": 60.0, "idle": 0.01} | more))
        runner = runner or InlineRunner(store, "0", target)
        environment = ApplyEnvironment(
            settings, store, "0", f"the job of {name}", target, runner, f"log/0/{name}", name=name
        )
        return ApplyJob(environment, self.stop)

    def close(self) -> None:
        """Closes the targets."""
        for one in self.targets.values():
            one.target.close()

    def apply(self, *names: str, **more: Any) -> None:
        """Runs the jobs of these targets, or of both; the log copies their outcomes."""
        for name in names or self.targets:
            self.job(name, **more).run(once=True)
        self.log.take_outcomes()

    def statuses(self) -> dict[str, dict[str, str]]:
        """Returns the status in each target of the units that are not resolved, by their names."""
        units, parts = self.log.state.units, self.log.state.targets.units
        return {units[tid].uow: {name: part.status.value for name, part in of.items()} for tid, of in parts.items()}


def _opened(name: str, database: Database, tables: str, targets: TableAssignment) -> OneTarget:
    database.run(tables)
    catalogue = only(reflect(database.url), targets, name)
    target = open_target(database.target, catalogue)
    target.prepare(f"log/0/{name}", catalogue)
    return OneTarget(name, database, catalogue, target)


def item(key: int, value: int = 0) -> Delta:
    """Returns an insert of a row of the shop."""
    return Delta("item", Operation.INSERT, {"id": key}, {"id": key, "v": value}, {})


def contact(key: int, value: int = 0) -> Delta:
    """Returns an insert of a row of the CRM."""
    return Delta("contact", Operation.INSERT, {"id": key}, {"id": key, "v": value}, {})


def changed(table: str, key: int, value: int) -> Delta:
    return Delta(table, Operation.UPDATE, {"id": key}, {"v": value}, {})


def noting(uow: str, *deltas: Delta) -> Sequence[Delta]:
    """Returns the deltas, and a note in each target that they touch."""
    where = dict.fromkeys(TARGETS.target_of(delta.table) or "" for delta in deltas)
    notes = (Delta(NOTES[name], Operation.INSERT, {}, {"what": uow}, {}) for name in where)
    return (*deltas, *notes)
