"""A log and two targets that one apply job serves, for tests of ``targetCommit = atomic`` and ``together``."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from typing import Any, cast

from kainite.log.contract import LogStore
from kainite.settings import ApplySettings, TargetCommit
from kainite.settings.assignment import TableAssignment
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.several import merged, only
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.signing import Signing
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.holding import BeforeCommit, HoldingSession, HoldingTarget
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.preparing import (
    PreparedPart,
    PreparingSession,
    PreparingTarget,
    TransactionName,
    gid_of,
)
from kainite_spark.targets.sqlite.target import SqliteTarget
from kainite_spark.targets.together.target import TogetherTarget
from support.chaos import Fate, KilledError, MortalSession, MortalStore, MortalTarget
from support.inline_runner import QUICK, InlineRunner
from support.main_log import MainLog
from support.preparing_sqlite import PreparingSqlite
from support.several_world import NOTES, TABLES, TARGETS, contact, item, noting
from support.stores import Database

LEDGER = "log/0"
FENCE = Fence(LEDGER, 1, 1)
NAME = TransactionName(1, 1, "a1")


class AtomicWorld:
    """One log partition, and the targets ``shop`` and ``crm``, which commit together.

    Args:
        store: the log's store.
        databases: an empty database for each target.
        targets: which there are.
        commit: how they commit.
    """

    def __init__(
        self,
        store: LogStore,
        databases: Mapping[str, Database],
        targets: TableAssignment = TARGETS,
        commit: TargetCommit = TargetCommit.ATOMIC,
    ) -> None:
        self.store = store
        self.commit = commit
        self.stop = threading.Event()
        self.databases = databases
        self.assignment = targets
        for name, database in databases.items():
            database.run(TABLES[name] if len(databases) > 1 else "".join(TABLES.values()))
        catalogues = {name: only(reflect(databases[name].url), targets, name) for name in targets.names}
        self.catalogue: Catalogue = merged(catalogues.values())
        self.targets: dict[str, PreparingTarget] = {
            name: self._opened(databases[name], catalogues[name]) for name in targets.names
        }
        self.joint().prepare(LEDGER, self.catalogue)
        self.log = MainLog(store, Signing(self.catalogue))

    def joint(self, fate: Fate | None = None, store: LogStore | None = None) -> AtomicTarget | TogetherTarget:
        """Returns the targets as one; ``fate``: each change of one of them may be the last effect."""
        if self.commit is TargetCommit.ATOMIC:
            return self.target(fate, store)
        targets: dict[str, Any] = {
            name: target if fate is None else MortalHolding(cast(Any, target), fate, name)
            for name, target in self.targets.items()
        }
        return TogetherTarget(targets, self.assignment)

    def target(self, fate: Fate | None = None, store: LogStore | None = None) -> AtomicTarget:
        """Returns them, with ``targetCommit = atomic``; arguments as of :meth:`joint`."""
        targets: dict[str, Any] = {
            name: target if fate is None else MortalPreparing(target, fate, name)
            for name, target in self.targets.items()
        }
        return AtomicTarget(targets, self.assignment, Decisions(store or self.store, "0"))

    def job(self, fate: Fate | None = None, target: Any = None, options: ApplyOptions = QUICK, **more: Any) -> ApplyJob:
        """Returns an apply job; ``options`` are its tasks', ``more`` its settings."""
        store = self.store if fate is None else MortalStore(self.store, fate)
        target = target or self.joint(fate, store)
        settings = ApplySettings(**({"lease": 60.0, "idle": 0.01} | more))
        runner = InlineRunner(store, "0", target, options=options)
        return ApplyJob(ApplyEnvironment(settings, store, "0", "a job", target, runner, LEDGER), self.stop)

    def apply(self, *fates: Fate, **more: Any) -> None:
        """Runs jobs, one after the other, until one ends that did not die; the log copies their outcomes."""
        for fate in (*fates, None):
            with suppress(KilledError):
                self.job(fate, **more).run(once=True)
                break
        self.log.take_outcomes()

    def rows(self, name: str) -> dict[int, int]:
        """Returns the rows of a target's table with a key."""
        return dict(self.databases[name].rows(f"SELECT id, v FROM {'item' if name == 'shop' else 'contact'}"))

    def noted(self, name: str) -> list[str]:
        """Returns the names that units noted in a target; each applied unit stands there once."""
        return sorted(what for (what,) in self.databases[name].rows(f"SELECT what FROM {NOTES[name]}"))

    def left(self) -> list[PreparedPart]:
        """Returns what is prepared in the targets."""
        return [part for parts in self.target().left_prepared(LEDGER).values() for part in parts]

    def statuses(self) -> dict[str, str]:
        return {unit.uow: unit.status.value for unit in self.log.state.units.values()}

    def close(self) -> None:
        """Rolls back what is left prepared, and closes the targets."""
        for target in self.targets.values():
            for part in target.prepared("kainite:") if self.commit is TargetCommit.ATOMIC else ():
                target.finish(part.gid, committed=False)
            target.close()

    def _opened(self, database: Database, catalogue: Catalogue) -> Any:
        target = open_target(database.target, catalogue)
        if self.commit is TargetCommit.ATOMIC and isinstance(target, SqliteTarget):
            return PreparingSqlite(target)
        return target


def both(tid: int = 1, value: int = 1) -> Unit:
    """Returns a unit of both targets."""
    return Unit(tid, f"T-{tid}", tuple(noting(f"T-{tid}", item(tid, value), contact(tid, value))))


def leave_prepared(world: AtomicWorld, *names: str, unit: Unit | None = None) -> None:
    """Prepares the parts of a unit in some targets, as a task that dies then: under :data:`FENCE` and :data:`NAME`."""
    parts = {"shop": noting("T-1", item(1, 1)), "crm": noting("T-1", contact(1, 1))}
    for name in names:
        with closing(world.targets[name].connect()) as session:
            own = unit or Unit(1, "T-1", tuple(parts[name]))
            session.prepare(FENCE, (own,), gid_of(LEDGER, name, NAME))


@dataclass
class MortalPreparingSession(MortalSession):
    """A session under a fate; its target's name is in the names of effects."""

    inner: PreparingSession
    name: str = ""

    def prepare(self, fence: Fence, units: Collection[Unit], gid: str, *, folded: bool = False) -> None:
        self.fate.effect(f"prepare in {self.name}", lambda: self.inner.prepare(fence, units, gid, folded=folded))

    def prepare_in_source_order(self, fence: Fence, unit: Unit, gid: str) -> None:
        self.fate.effect(f"prepare in {self.name}", lambda: self.inner.prepare_in_source_order(fence, unit, gid))

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        return self.inner.prepared(prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        return self.fate.effect(f"finish in {self.name}", lambda: self.inner.finish(gid, committed=committed))


@dataclass
class MortalPreparing(MortalTarget):
    """A target that can prepare, under a fate."""

    inner: PreparingTarget
    name: str = ""

    def connect(self) -> MortalPreparingSession:
        return MortalPreparingSession(self.inner.connect(), self.fate, self.name)

    def require_preparing(self) -> None:
        self.inner.require_preparing()

    def ledger_place(self) -> str:
        return self.inner.ledger_place()

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        return self.inner.prepared(prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        return self.fate.effect(f"resolve in {self.name}", lambda: self.inner.finish(gid, committed=committed))


@dataclass
class MortalHoldingSession:
    """A session under a fate, whose transactions wait with their commit."""

    inner: HoldingSession
    fate: Fate
    name: str

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        return self.inner.applied(log_partition, tids)

    def before_commit(self, act: BeforeCommit) -> AbstractContextManager[None]:
        return self.inner.before_commit(act)

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        self.fate.effect(f"commit in {self.name}", lambda: self.inner.apply(fence, units, folded=folded))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self.fate.effect(f"commit in {self.name}", lambda: self.inner.apply_in_source_order(fence, unit))

    def close(self) -> None:
        self.inner.close()


@dataclass
class MortalHolding(MortalTarget):
    """A target whose transactions can wait with their commit, under a fate."""

    inner: HoldingTarget
    name: str = ""

    def connect(self) -> MortalHoldingSession:  # type: ignore[override]
        return MortalHoldingSession(self.inner.connect(), self.fate, self.name)
