"""A MariaDB source, a PostgreSQL target with its tables, loads between them, and what follows from the binlog."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg

from kainite.base.errors import TargetFencedError
from kainite.capture.mysql.extractor import BinlogReading
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import is_mariadb
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.load_ledger import found_load
from kainite.replicate.status import ReplicaStatus, status_of
from kainite.settings import ApplySettings, ExtractOffsets
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.signing import Signing
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.snapshot_readers import SnapshotReaders
from kainite_spark.targets.opening import open_stops, open_target
from support.apply_world import World
from support.carried_records import CarriedRecords
from support.mariadb_source import Extraction, execute, here, rows
from support.replicas import LOG, run, tables_of

READERS: Final = 2


class BinlogSides(Protocol):
    """A source and its target."""

    @property
    def ends(self) -> Any:
        """Returns both, and the extraction's offset: a ``BinlogEnds``."""


@dataclass
class BinlogLoading:
    """A source and its target.

    Attributes:
        ends: both, and the extraction's offset.
    """

    ends: BinlogEnds

    def load(self, runner: StepRunner | None = None, *, anew: bool = False, **more: Any) -> FoundLoad:
        """Loads the target, as ``kainite replicate load`` does it."""
        catalogue = partial(tables_of, self.ends.target)
        found = catalogue()
        with closing(open_target(self.ends.target, found, apply=ApplySettings())) as target:
            target.prepare(self.ends.log_partition, found)
        with psycopg.connect(self.ends.target, autocommit=True) as connection:
            source, steps = BinlogCopySource(self.ends), runner or SnapshotReaders(READERS)
            return LoadJob(source, connection, steps, catalogue, **more).run(anew=anew)

    def found(self) -> FoundLoad:
        with psycopg.connect(self.ends.target, autocommit=True) as connection:
            found = found_load(connection, self.ends.log_partition)
        assert found is not None
        return found

    def status(self) -> ReplicaStatus:
        with psycopg.connect(self.ends.target, autocommit=True) as connection:
            return status_of(connection, self.ends.log_partition)

    def in_source(self, *statements: str) -> None:
        execute(self.ends.source.url, *statements)

    def in_target(self, *statements: str) -> list[Any]:
        """Executes statements; returns the rows of the last one of a PostgreSQL target."""
        if is_mariadb(self.ends.target):
            execute(self.ends.target, *statements)
            return []
        return run(self.ends.target, *statements)

    def differences(self, *tables: str) -> dict[str, tuple[int, int]]:
        """Returns how many rows each side has that the other lacks, of tables whose rows both drivers read alike.

        Args:
            tables: which; all that Kainite has loaded where there are none.
        """
        found = {}
        for table in tables or [name for (name,) in self.in_target("SELECT table_name FROM kainite_load_table")]:
            one = {tuple(map(str, row)) for row in rows(self.ends.source.url, f"SELECT * FROM {table}")}
            other = {tuple(map(str, row)) for row in self.in_target(f"SELECT * FROM {table}")}
            if one != other:
                found[table] = (len(one - other), len(other - one))
        return found


@contextmanager
def binlog_loading(
    source: str, target: str, folder: Path, in_source: Sequence[str], in_target: Sequence[str], **options: Any
) -> Iterator[BinlogLoading]:
    """Makes the tables of a source and of its target, and the offset file of an extraction that begins there.

    Args:
        source, target: the databases.
        folder: of the file.
        in_source, in_target: statements that are executed there.
        options: how the source is read.
    """
    execute(source, *in_source)
    if is_mariadb(target):
        execute(target, *in_target)
    else:
        run(target, *in_target)
    offsets = OffsetFile(folder / "offset", "stream", ExtractOffsets.KAINITE)
    offsets.create(Place(here(source)))
    yield BinlogLoading(BinlogEnds(BinlogReading(source, **options), target, LOG, offsets))


class Following:
    """An extraction from the loading's offset, whose units are applied to the target.

    Args:
        loading: source and target.
        apply: settings with which the target is opened.
        options: how the source is read.

    Attributes:
        store: where the log is.
    """

    def __init__(self, loading: BinlogSides, apply: ApplySettings | None = None, **options: Any) -> None:
        self._offsets = loading.ends.offsets
        self._url = loading.ends.source.url
        self._apply = apply
        self._extraction = Extraction(self._url, self._offsets.load().start, **options)
        self.store = MemoryStore()
        self._world = World(self.store, loading.ends.target, create=False, apply=apply)
        self._world.stops = open_stops(loading.ends.target, LOG)
        self._records = CarriedRecords(self._world)

    def catch_up(self) -> int:
        """Applies all that the source has committed; returns the last transaction's number."""
        self._bring(self._extraction.quiet())
        return int(self._extraction.offset["number"])

    @property
    def number(self) -> int:
        """Returns the number of the last transaction that is in the log."""
        return int(self._offsets.load().start["number"])

    def read(self) -> None:
        """Brings all that the source has committed to the log, and applies nothing."""
        self._log(self._extraction.quiet())

    @contextmanager
    def living(self, *expected: type[Exception]) -> Iterator[None]:
        """Lets extractor, log and apply job run on threads meanwhile; they may end by the expected errors."""
        with self._world.living(self._extract, *expected):
            yield

    def follow(self, over: threading.Event) -> None:
        """Brings what commits on the source to the target, until ``over`` is set."""
        while not over.is_set():
            self._bring(self._extraction.answer())

    def begin_again(self, **options: Any) -> None:
        """Goes on as a fresh process of the extractor, with other options."""
        self._extraction.close()
        self._extraction = Extraction(self._url, self._offsets.load().start, **options)

    def read_catalogue(self) -> None:
        """Reads the target's tables again, as the daemon and the apply job do where they meet a new one."""
        world = self._world
        world.target.close()
        world.catalogue = reflect(world.database.target, ())
        world.target = open_target(world.database.target, world.catalogue, apply=self._apply)
        world.target.prepare(world.ledger, world.catalogue)
        world.log.signatures = Signing(world.catalogue)

    def retry(self, uow: str) -> None:
        """Has a failed unit applied once more."""
        self._world.log.ask("retry", uow)
        self._world.apply()

    def failed(self) -> dict[str, str]:
        """Returns the units that are not committed, with their causes."""
        return {unit.uow: f"{unit.status.value}: {unit.cause}" for unit in self._world.log.state.units.values()}

    def _extract(self) -> None:
        self._log(self._extraction.answer())

    def _log(self, records: Sequence[bytes]) -> None:
        self._records.log(records)
        self._offsets.save(Place(self._extraction.offset))

    def _bring(self, records: Sequence[bytes]) -> None:
        self._log(records)
        with suppress(TargetFencedError):  # a load fences the job; whoever watches it starts another one
            self._world.apply()

    def close(self) -> None:
        self._extraction.close()
        self._world.target.close()
        if self._world.stops is not None:
            self._world.stops.close()


@contextmanager
def following(loading: BinlogSides, apply: ApplySettings | None = None, **options: Any) -> Iterator[Following]:
    """Gives an extraction and an apply job, in this process."""
    made = Following(loading, apply, **options)
    try:
        yield made
    finally:
        made.close()
