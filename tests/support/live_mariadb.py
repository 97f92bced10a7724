"""A live replica in MariaDB of a PostgreSQL or MariaDB source, with the traffic and looks of ``live_replica.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from kainite.capture.mysql.extractor import BinlogReading
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.truncate import OnTruncate
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.mariadb_load_ledger import found_mariadb_load
from kainite.replicate.mariadb_status import mariadb_status
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.status import ReplicaStatus
from kainite.replicate.table_load import OwnLoad
from kainite.settings import ExtractOffsets
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.copy_source import CopySource, PostgresCopySource
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.snapshot_readers import SnapshotReaders
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.targets.mariadb.session import MariadbSession
from kainite_spark.targets.opening import open_target
from support.binlog_loading import READERS, following
from support.live_binlog import FILL as BINLOG_FILL
from support.live_binlog import TABLES as BINLOG_TABLES
from support.live_binlog import BinlogTraffic, CalledReaders
from support.live_replica import FILL, TABLES, AccountTraffic, LiveReplica
from support.mariadb_loading import SCHEMA, load_into_mariadb, mariadb_following, mariadb_loading, mariadb_target
from support.mariadb_server import rows_of
from support.mariadb_source import execute, here
from support.mariadb_source import rows as binlog_rows
from support.replicas import LOG, InlineSteps, run
from support.waiting import eventually

IN_TARGET: Final = (
    "CREATE TABLE account (id int PRIMARY KEY, balance decimal(20,0) NOT NULL, pad longtext)",
    "CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)",
    "CREATE TABLE journal (n bigint PRIMARY KEY)",
)
_ENTRY: Final = (
    "CREATE TABLE entry (n bigint PRIMARY KEY, giver int NOT NULL, taker int NOT NULL,"
    " CONSTRAINT entry_giver FOREIGN KEY (giver) REFERENCES account (id){})"
)
FOREIGN_KEYS: Final = """
    SELECT constraint_name FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()"""
_STATE: Final = f"""
    SELECT n, (SELECT COUNT(*) FROM journal), (SELECT COALESCE(MAX(n), 0) FROM journal) FROM counter
    WHERE (SELECT state FROM kainite_load WHERE log_partition = '{LOG}') <> 'loading'"""


@dataclass
class MariadbSides:
    """A source of either kind, and its MariaDB target.

    Attributes:
        ends: both.
        source: the source of a load.
        source_rows: asks the source for rows.
        in_source: executes statements in the source.
        runner: what runs the steps of the load of everything.
    """

    ends: Any
    source: Callable[[], CopySource]
    source_rows: Callable[[str], Sequence[tuple[Any, ...]]]
    in_source: Callable[..., object]
    runner: Callable[[], StepRunner]

    def load(self, *, anew: bool = False) -> FoundLoad:
        return load_into_mariadb(self.source(), self.ends, self.runner(), anew=anew)

    def found(self) -> FoundLoad:
        with mariadb_session(self.ends.target) as connection:
            found = found_mariadb_load(connection, LOG)
        assert found is not None
        return found

    def status(self) -> ReplicaStatus:
        with mariadb_session(self.ends.target) as connection:
            return mariadb_status(connection, LOG)

    def in_target(self, *statements: str) -> list[Any]:
        answers: list[Any] = []
        for statement in statements:
            answers = rows_of(self.ends.target, statement)
        return answers

    def differences(self, *tables: str) -> dict[str, tuple[int, int]]:
        """Returns how many rows each side has that the other lacks; of all that Kainite has loaded without names."""
        found = {}
        for table in tables or [name for (name,) in self.in_target("SELECT table_name FROM kainite_load_table")]:
            one = {tuple(map(str, row)) for row in self.source_rows(f"SELECT * FROM {table}")}
            other = {tuple(map(str, row)) for row in self.in_target(f"SELECT * FROM {table}")}
            if one != other:
                found[table] = (len(one - other), len(other - one))
        return found


@dataclass
class LiveMariadb(LiveReplica):
    """A live replica in MariaDB that follows its source."""

    made: Any
    loading: Any
    traffic: Any

    def source(self) -> CopySource:
        source: CopySource = self.loading.source()
        return source

    def steps(self, before: Callable[[int], object] = lambda _: None) -> StepRunner:
        if isinstance(self.loading.ends, BinlogEnds):
            return CalledReaders(before)
        return InlineSteps(before, parallelism=1)

    def load(self, table: str, *, anew: bool = False, **more: Any) -> OwnLoad:
        target = self.loading.ends.target
        runner: StepRunner = more.pop("runner", None) or self.steps()
        with mariadb_session(target) as connection:
            return TableLoadJob(
                self.source(), (SCHEMA, table), connection, runner, partial(mariadb_session_with, target),
                partial(reflect, target), **more,
            ).run(anew=anew)  # fmt: skip

    def looking(self) -> None:
        with closing(connect(self.loading.ends.target)) as connection, connection.cursor() as cursor:
            while not self.over.is_set():
                cursor.execute(_STATE)
                for count, notes, latest in cursor.fetchall():
                    assert count == notes == latest
                    self.seen.append(count)

    def settle(self) -> None:
        eventually(lambda: self.applied(self.traffic.count))
        eventually(lambda: self.loading.differences() == {})
        eventually(lambda: self._told() == {})  # the log hears of it behind the target
        assert ("entry_giver",) in self.loading.in_target(FOREIGN_KEYS)
        assert self.loading.in_target("SELECT COUNT(*) FROM kainite_load_foreign_key") == [(0,)]
        assert self.loading.in_target("SELECT COUNT(*) FROM kainite_held_delta") == [(0,)]
        assert {table.state for table in self.loading.status().tables} == {"live"}


def mariadb_session_with(url: str) -> MariadbSession:
    """Opens a session of the apply job's kind, with the target's tables as they are now."""
    session = open_target(url, reflect(url)).connect()
    assert isinstance(session, MariadbSession)
    return session


@contextmanager
def live_from_postgresql(
    source: SourceSlot, server: str, *, follows: bool = True, on_truncate: OnTruncate = OnTruncate.FAIL
) -> Iterator[LiveMariadb]:
    """Gives a live replica of a PostgreSQL source."""
    in_target = [*IN_TARGET, _ENTRY.format(" ON DELETE CASCADE")]
    with mariadb_loading(source, server, [TABLES, FILL], in_target) as made:
        sides = MariadbSides(
            made.ends, lambda: PostgresCopySource(made.ends), partial(run, source.url), made.in_source, InlineSteps
        )
        with mariadb_following(made, on_truncate=on_truncate) as follower:
            yield from _followed(sides, follower, AccountTraffic(source.url), follows=follows)


@contextmanager
def live_from_mariadb(
    source: str, server: str, folder: Path, *, follows: bool = True, **options: Any
) -> Iterator[LiveMariadb]:
    """Gives a live replica of a MariaDB source; ``options`` say how it is read."""
    with mariadb_target(server, *IN_TARGET, _ENTRY.format("")) as target:
        execute(source, *BINLOG_TABLES, *BINLOG_FILL)
        offsets = OffsetFile(folder / "offset", "stream", ExtractOffsets.KAINITE)
        offsets.create(Place(here(source)))
        ends = BinlogEnds(BinlogReading(source, **options), target, LOG, offsets)
        sides = MariadbSides(
            ends, lambda: BinlogCopySource(ends), partial(binlog_rows, source), partial(execute, source),
            lambda: SnapshotReaders(READERS),
        )  # fmt: skip
        with following(sides, **options) as follower:
            yield from _followed(sides, follower, BinlogTraffic(source), follows=follows)


def _followed(sides: MariadbSides, follower: Any, traffic: Any, *, follows: bool) -> Iterator[LiveMariadb]:
    with ThreadPoolExecutor(2) as pool, ExitStack() as last:
        sides.load()
        live = LiveMariadb(follower, sides, traffic)
        last.callback(live.over.set)
        if follows:
            live.threads = [pool.submit(follower.follow, live.over), pool.submit(live.looking)]
        yield live
        live.over.set()
        for thread in live.threads:
            thread.result()
        assert live.seen == sorted(live.seen)
