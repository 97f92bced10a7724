"""A PostgreSQL source, a MariaDB target with its tables, loads between them, and what follows from the slot."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from kainite.base.errors import TargetFencedError
from kainite.capture.postgresql.extractor import PostgresExtractor, Reading
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.capture.truncate import OnTruncate
from kainite.replicate.ends import LoadEnds, ReplicaEnds
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.mariadb_load_ledger import found_mariadb_load
from kainite.replicate.mariadb_status import mariadb_status
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.status import ReplicaStatus
from kainite.settings import ApplySettings
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.load.copy_source import CopySource, PostgresCopySource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.runner import ThreadStepRunner
from kainite_spark.targets.opening import open_stops, open_target
from support.apply_world import World
from support.carried_records import CarriedRecords
from support.mariadb_server import drop_database, rows_of, run_script
from support.replicas import LOG, run

_ANSWERS: Final = 300
SCHEMA: Final = "public"
"""The target's database: a delta names its table with the source's schema."""


@contextmanager
def mariadb_target(server: str, *statements: str) -> Iterator[str]:
    """Makes the database :data:`SCHEMA` of a server, with tables; yields its address."""
    run_script(server, f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin")
    url = server.replace("/mysql?", f"/{SCHEMA}?")
    try:
        for statement in statements:
            run_script(url, statement)
        yield url
    finally:
        drop_database(server, SCHEMA)


def load_into_mariadb(
    source: CopySource, ends: LoadEnds, runner: StepRunner | None = None, *, anew: bool = False, **more: Any
) -> FoundLoad:
    """Loads a target, as ``kainite replicate load`` does it."""
    catalogue = partial(reflect, ends.target)
    found = catalogue()
    with closing(open_target(ends.target, found, apply=ApplySettings())) as target:
        target.prepare(ends.log_partition, found)
    with mariadb_session(ends.target) as connection:
        return LoadJob(source, connection, runner or ThreadStepRunner(), catalogue, **more).run(anew=anew)


@dataclass
class MariadbLoading:
    """A source with its slot, and its target.

    Attributes:
        ends: both databases.
        begin: the offset with which an extraction begins.
    """

    ends: ReplicaEnds
    begin: dict[str, Any]

    def load(self, runner: StepRunner | None = None, *, anew: bool = False, **more: Any) -> FoundLoad:
        return load_into_mariadb(PostgresCopySource(self.ends), self.ends, runner, anew=anew, **more)

    def found(self) -> FoundLoad:
        with mariadb_session(self.ends.target) as connection:
            found = found_mariadb_load(connection, self.ends.log_partition)
        assert found is not None
        return found

    def status(self) -> ReplicaStatus:
        with mariadb_session(self.ends.target) as connection:
            return mariadb_status(connection, self.ends.log_partition)

    def in_source(self, *statements: str) -> list[Any]:
        return run(self.ends.source.url, *statements)

    def in_target(self, query: str) -> list[tuple[Any, ...]]:
        return rows_of(self.ends.target, query)

    def change_target(self, *statements: str) -> None:
        for statement in statements:
            run_script(self.ends.target, statement)

    def differences(self, *tables: str) -> dict[str, tuple[int, int]]:
        """Returns how many rows each side has that the other lacks, of tables whose rows both drivers read alike."""
        found = {}
        for table in tables:
            one = {tuple(map(str, row)) for row in self.in_source(f"SELECT * FROM {table}")}
            other = {tuple(map(str, row)) for row in self.in_target(f"SELECT * FROM {table}")}
            if one != other:
                found[table] = (len(one - other), len(other - one))
        return found


@contextmanager
def mariadb_loading(
    source: SourceSlot, server: str, in_source: Sequence[str], in_target: Sequence[str]
) -> Iterator[MariadbLoading]:
    """Makes the tables of a source, its slot, and a target with its tables.

    Args:
        source: the source; its tables are dropped.
        server: of MariaDB.
        in_source, in_target: what makes the tables of each.
    """
    run(source.url, "DROP TABLE IF EXISTS item, note", *in_source)
    with create_slot(source) as slot:
        begin = Offset(slot.lsn, 0).as_json()
    with mariadb_target(server, *in_target) as target:
        yield MariadbLoading(ReplicaEnds(source, target, LOG), begin)


class MariadbFollower:
    """An extraction from the slot on, whose units are applied to the target; extractor, log and apply job are real.

    Args:
        loading: source and target.
        on_truncate: what TRUNCATE does.

    Attributes:
        store: where the log is.
    """

    def __init__(self, loading: MariadbLoading, on_truncate: OnTruncate = OnTruncate.FAIL) -> None:
        self._offset = loading.begin
        self._extractor = PostgresExtractor(Reading(loading.ends.source, on_truncate=on_truncate))
        self.store = MemoryStore()
        self._world = World(self.store, loading.ends.target, create=False)
        self._world.stops = open_stops(loading.ends.target, loading.ends.log_partition)
        self._records = CarriedRecords(self._world)

    @contextmanager
    def living(self) -> Iterator[None]:
        """Lets extractor, log and apply job run on threads meanwhile, as they do for good."""
        with self._world.living(self._answer_once):
            yield

    def log(self, number: int) -> None:
        """Brings transactions into the log, up to the one with this number."""
        for _ in range(_ANSWERS):
            if self._offset["number"] >= number:
                return
            self._answer_once()
        raise AssertionError(f"the source has sent {self._offset['number']} transactions of {number}")

    def follow(self, over: threading.Event) -> None:
        """Brings what commits on the source to the target, until ``over`` is set."""
        while not over.is_set():
            self._answer_once()
            with suppress(TargetFencedError):  # a load fences the job; whoever watches it starts another one
                self._world.apply()

    def catch_up(self, number: int) -> None:
        """Applies the transactions up to the one with this number."""
        self.log(number)
        self._world.apply()

    def apply(self) -> None:
        self._world.apply()

    def failed(self) -> dict[str, str]:
        """Returns the units that are not committed, with their causes."""
        return {unit.uow: f"{unit.status.value}: {unit.cause}" for unit in self._world.log.state.units.values()}

    def _answer_once(self) -> None:
        """Takes one answer of the extractor, which may have nothing in it."""
        said = list(self._extractor.answer(orjson.dumps({"start": self._offset, "end": None})))
        if said:
            self._offset = orjson.loads(said.pop())["offset"]
        self._records.log(said)

    def close(self) -> None:
        self._extractor.close()
        self._world.target.close()
        if self._world.stops is not None:
            self._world.stops.close()


@contextmanager
def mariadb_following(loading: MariadbLoading, on_truncate: OnTruncate = OnTruncate.FAIL) -> Iterator[MariadbFollower]:
    """Gives an extraction and an apply job, in this process."""
    made = MariadbFollower(loading, on_truncate)
    try:
        yield made
    finally:
        made.close()
