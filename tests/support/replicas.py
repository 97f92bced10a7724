"""A source, a target with the source's tables, and loads between them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import psycopg

from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.load_ledger import found_load
from kainite.replicate.status import ReplicaStatus, status_of
from kainite.settings import ApplySettings
from kainite.targets.postgresql.catalogue import reading_unfinished
from kainite.targets.postgresql.text_forms import as_options
from kainite.uow.catalogue.reflection import catalogue_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.any_step import run_any_step
from kainite_spark.load.copy_source import PostgresCopySource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.tasks import LoadStepResult, LoadTask, close_sessions
from kainite_spark.targets.opening import open_target

LOG: Final = "log/0"
_READABLE: Final = f"{as_options()} -c search_path="

_TABLES: Final = """
    SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
      AND c.relname NOT LIKE 'kainite\\_%' ORDER BY 1"""


@dataclass
class InlineSteps:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` with threads of this process.

    Attributes:
        before: called with each step's number before it runs; what it raises ends the job, as a kill does.
        parallelism: how many steps run at once.
        ran: the steps that ran.
    """

    before: Callable[[int], object] = lambda _: None
    parallelism: int = 2
    ran: list[int] = field(default_factory=list)

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        look()
        with ThreadPoolExecutor(self.parallelism) as pool:
            return list(pool.map(partial(self._run, task), steps))

    def _run(self, task: LoadTask, step: int) -> LoadStepResult:
        self.before(step)
        self.ran.append(step)
        try:
            return run_any_step(task, step)
        finally:
            close_sessions()


@dataclass(frozen=True)
class Loading:
    """A source with its main slot, and its target.

    Attributes:
        ends: both databases.
        slot_lsn: the main slot's LSN, from which on the log has what commits.
    """

    ends: ReplicaEnds
    slot_lsn: int

    def load(
        self, runner: StepRunner | None = None, *, anew: bool = False, lock_wait: float = LOCK_WAIT_S, **more: Any
    ) -> FoundLoad:
        """Loads the target, as ``kainite replicate load`` does it."""
        catalogue = tables_of(self.ends.target)
        with closing(open_target(self.ends.target, catalogue, apply=ApplySettings())) as target:
            target.prepare(self.ends.log_partition, catalogue)
        with psycopg.connect(self.ends.target, autocommit=True) as connection:
            job = LoadJob(
                PostgresCopySource(self.ends, lock_wait),
                connection,
                runner or InlineSteps(),
                partial(tables_of, self.ends.target),
                threading.Event(),
                **more,
            )
            return job.run(anew=anew)

    def found(self) -> FoundLoad:
        with psycopg.connect(self.ends.target, autocommit=True) as connection:
            found = found_load(connection, self.ends.log_partition)
        assert found is not None
        return found

    def status(self) -> ReplicaStatus:
        with psycopg.connect(self.ends.target, autocommit=True) as connection:
            return status_of(connection, self.ends.log_partition)

    def in_source(self, *statements: str) -> list[Any]:
        return run(self.ends.source.url, *statements)

    def in_target(self, *statements: str) -> list[Any]:
        return run(self.ends.target, *statements)

    def differences(self) -> dict[str, tuple[int, int]]:
        """Returns the tables whose rows differ, with how many rows each side has that the other lacks."""
        source, target = rows_of(self.ends.source.url), rows_of(self.ends.target)
        assert source.keys() <= target.keys(), "the target lacks tables"
        return {
            name: (len(set(rows) - set(target[name])), len(set(target[name]) - set(rows)))
            for name, rows in source.items()
            if rows != target[name]
        }


@contextmanager
def loading(source: SourceSlot, target: str, *scripts: str, both: Sequence[str] = ()) -> Iterator[Loading]:
    """Makes a source and a target.

    Args:
        source: the source; its tables are dropped.
        target: an empty database.
        scripts: executed in the source, and in the target before them those of ``both``.
        both: executed on both sides.
    """
    for url, more in ((source.url, scripts), (target, ())):
        run(url, "DROP TABLE IF EXISTS item, note", *both, *more)
    with create_slot(source) as slot:
        pass
    yield Loading(ReplicaEnds(source, target, LOG), slot.lsn)


def tables_of(url: str) -> Catalogue:
    """Returns the tables of a target, whether they have their keys or not."""
    with reading_unfinished(url) as reader:
        return catalogue_of(reader, ())


def run(url: str, *statements: str) -> list[Any]:
    """Executes statements in a database; returns the rows of the last one, if it has any."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows: list[Any] = []
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return rows


def rows_of(url: str) -> dict[str, list[str]]:
    """Returns the rows of all tables of a database but Kainite's, as text, sorted."""
    with psycopg.connect(url, options=_READABLE, autocommit=True) as connection:
        names = [name for (name,) in connection.execute(_TABLES.encode())]
        return {
            name: sorted(row for (row,) in connection.execute(f"SELECT t::text FROM {name} AS t".encode()))
            for name in names
        }
