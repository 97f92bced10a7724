"""Measures the load of a replica: rows and bytes a second from one PostgreSQL server to another, on this machine.

Four databases: one table of narrow rows, one of wide rows, one with five indexes, and a hundred small tables. Each is
copied into an empty database with its keys and indexes by

* ``kainite``: ``kainite replicate load``'s own job, with the tables made as ``init --write`` makes them, on Spark
  (``local[2]``), which is started before with its Python workers; how long that takes is printed beside it. The process
  that keeps the snapshot is started before, too: the command starts it beside Spark;
* ``pg_dump | psql``;
* ``pg_dump -Fd -j2`` and then ``pg_restore -j2``;
* ``CREATE SUBSCRIPTION (copy_data = true)``: PostgreSQL's own initial copy, into tables that have their keys, with two
  workers.

Both servers have fsync and synchronous_commit on. Memory is the peak (VmHWM) of the largest process that copies.
Processor time (user and system) is that of both servers and of all processes that copy; other work on the machine
hardly changes it. With ``--turns`` the methods take turns, and for each the ratio to ``pg_restore -j2`` in the same
turn is printed.

    python benchmarks/load.py [--rows N] [--databases narrow …] [--methods kainite …] [--turns N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psutil
import psycopg
from runs.machine import warn_unless_quiet
from runs.processor import processor_seconds

from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate import ledger
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.keeper import keeper_process
from kainite.replicate.load_ledger import LoadLedger
from kainite.replicate.own_process import OwnProcess
from kainite.replicate.schema_dump import dump_schema
from kainite.replicate.tables import published
from kainite.targets.postgresql.catalogue import reading_unfinished
from kainite.uow.catalogue.reflection import catalogue_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_demo.postgres_server import postgres, programs
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.session import spark_context
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.executor import worker_daemon
from kainite_spark.load.copy_source import PostgresCopySource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.runner import run_steps
from kainite_spark.targets.opening import open_target

_SAFE: Final = {"fsync": "on", "full_page_writes": "on", "wal_level": "logical", "max_replication_slots": "40"}
_SUBSCRIBED_LIMIT_S: Final = 3600.0

DATABASES: Final = {
    "narrow": "CREATE TABLE t (id bigint PRIMARY KEY, v int, w int);"
    " INSERT INTO t SELECT n, n % 97, n % 1009 FROM generate_series(1, {rows}) n",
    "wide": "CREATE TABLE t (id bigint PRIMARY KEY, a text, b text, c jsonb, d timestamptz);"
    " INSERT INTO t SELECT n, repeat(md5(n::text), 10), repeat(md5(n::text), 15), jsonb_build_object('n', n),"
    " now() FROM generate_series(1, {rows} / 10) n",
    "indexed": "CREATE TABLE t (id bigint PRIMARY KEY, a int, b int, c text, d timestamptz);"
    " CREATE INDEX ON t (a); CREATE INDEX ON t (b); CREATE INDEX ON t (c); CREATE INDEX ON t (d, a);"
    " INSERT INTO t SELECT n, n % 997, n % 7919, md5(n::text), '2026-01-01'::timestamptz + n * interval '1 s'"
    " FROM generate_series(1, {rows} / 2) n",
    "hundred": "DO $$ BEGIN FOR k IN 1..100 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, v text)', k);"
    " EXECUTE format('INSERT INTO t%s SELECT n, md5(n::text) FROM generate_series(1, {rows} / 1000) n', k);"
    " END LOOP; END $$",
}


@dataclass(frozen=True)
class Measured:
    """One copy.

    Attributes:
        database, method: what was copied, and how.
        rows, megabytes: what the source has, indexes left out.
        seconds: from the empty database to the last key.
        rows_a_second, megabytes_a_second: of these.
        processor_seconds: of the processor, by both servers and all that copy.
        worker_peak_mb: the peak of the largest process of Kainite's that copies; None for others.
    """

    database: str
    method: str
    rows: int
    megabytes: float
    seconds: float
    rows_a_second: int
    megabytes_a_second: float
    processor_seconds: float
    worker_peak_mb: float | None = None


@dataclass
class Servers:
    """The two servers' maintenance databases."""

    source: str
    target: str

    def of(self, name: str) -> tuple[str, str]:
        """Returns the URLs of a database on both sides."""
        return self.source.replace("/postgres?", f"/{name}?"), self.target.replace("/postgres?", f"/{name}?")

    def empty(self, name: str) -> None:
        """Makes the database on the target anew."""
        execute(self.target, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}", "CHECKPOINT")


def execute(url: str, *statements: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return rows


def by_kainite(runner: StepRunner, keeper: OwnProcess, source: str, target: str) -> None:
    slot = SourceSlot(source, "bench", "bench")
    execute(source, "CREATE PUBLICATION bench FOR ALL TABLES")
    try:
        with create_slot(slot):
            pass
        _load(runner, keeper, ReplicaEnds(slot, target, "log/0"))
    finally:
        execute(source, "SELECT pg_drop_replication_slot('bench')", "DROP PUBLICATION bench")


def _load(runner: StepRunner, keeper: OwnProcess, ends: ReplicaEnds) -> None:
    def catalogue() -> Catalogue:
        with reading_unfinished(ends.target) as reader:
            return catalogue_of(reader, ())

    with psycopg.connect(ends.source.url, autocommit=True) as source:
        dump = dump_schema(source, ends.source.url, [table.sql for table in published(source, "bench")])
    with psycopg.connect(ends.target, autocommit=True) as connection:
        for statement in ledger.CREATE:
            connection.execute(statement)
        LoadLedger(connection, ends.log_partition).prepare(dump.script, dump.steps)
    found = catalogue()
    with closing(open_target(ends.target, found)) as opened:
        opened.prepare(ends.log_partition, found)
    with psycopg.connect(ends.target, autocommit=True) as connection:
        LoadJob(PostgresCopySource(ends, keeper=keeper), connection, runner, catalogue).run()


def by_psql(source: str, target: str) -> None:
    shell(f"pg_dump {shlex.quote(source)} | psql -qX -v ON_ERROR_STOP=1 {shlex.quote(target)}")


def by_restore(source: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shell(f"pg_dump -Fd -j2 -Z0 -f {folder}/dump {shlex.quote(source)}")
        shell(f"pg_restore -j2 -d {shlex.quote(target)} {folder}/dump")


def by_subscription(source: str, target: str) -> None:
    shell(f"pg_dump --schema-only {shlex.quote(source)} | psql -qX {shlex.quote(target)}")
    execute(source, "CREATE PUBLICATION own FOR ALL TABLES")
    try:
        parts = psycopg.conninfo.conninfo_to_dict(source)
        conninfo = " ".join(f"{key}={value}" for key, value in parts.items())
        execute(target, f"CREATE SUBSCRIPTION own CONNECTION '{conninfo}' PUBLICATION own")
        limit = time.monotonic() + _SUBSCRIBED_LIMIT_S
        while execute(target, "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'") != [(0,)]:
            if time.monotonic() > limit:
                raise TimeoutError("the subscription has not copied its tables")
            time.sleep(0.05)
        execute(target, "DROP SUBSCRIPTION own")
    finally:
        execute(source, "DROP PUBLICATION own")


def shell(command: str) -> None:
    environment = os.environ | {"PATH": f"{programs()}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, env=environment, stdout=subprocess.DEVNULL)


def measured(servers: Servers, database: str, method: str, copy: Callable[[str, str], None]) -> Measured:
    """Copies a database; checks that the target has all rows."""
    source, target = servers.of(database)
    servers.empty(database)
    watched = [psutil.Process(), *(psutil.Process(_postmaster(url)) for url in (source, servers.target))]
    before, began = processor_seconds(watched), time.monotonic()
    copy(source, target)
    seconds, processor = time.monotonic() - began, processor_seconds(watched) - before
    rows, size = sizes(source)
    assert sizes(target)[0] == rows, "the target lacks rows"
    peak = worker_peak_mb() if method == _KAINITE else None
    return Measured(database, method, rows, round(size / 2**20, 1), round(seconds, 2), round(rows / seconds),
                    round(size / 2**20 / seconds, 1), round(processor, 2), peak)  # fmt: skip


def _postmaster(url: str) -> int:
    """Returns the process of a server."""
    folder = str(execute(url, "SHOW data_directory")[0][0])
    return int((Path(folder) / "postmaster.pid").read_text().splitlines()[0])


def sizes(url: str) -> tuple[int, int]:
    """Returns the rows and bytes of all tables but Kainite's."""
    names = "SELECT format('%I', relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    tables = [str(name) for (name,) in execute(url, f"{names} AND relname NOT LIKE 'kainite%'")]
    counts = [execute(url, f"SELECT count(*), pg_table_size('{name}') FROM {name}")[0] for name in tables]
    return sum(int(str(rows)) for rows, _ in counts), sum(int(str(size)) for _, size in counts)


def worker_peak_mb() -> float:
    """Returns the peak of the largest process that copies, of those that live."""
    peaks = [0.0]
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, OSError):  # one that ends meanwhile
            if worker_daemon.__name__ in process.cmdline():
                status = Path(f"/proc/{process.pid}/status").read_text()
                peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
    return round(max(peaks), 1)


@contextmanager
def servers_of(rows: int, databases: list[str]) -> Iterator[Servers]:
    """Runs both servers, the source with its databases."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kainite-load-")))
        made = Servers(*(stack.enter_context(postgres(folder / name, **_SAFE)) for name in ("source", "target")))
        for name in databases:
            execute(made.source, f"CREATE DATABASE {name}")
            execute(made.of(name)[0], DATABASES[name].format(rows=rows), "VACUUM ANALYZE", "CHECKPOINT")
        yield made


def run(rows: int, databases: list[str], methods: list[str], turns: int) -> Iterator[Measured]:
    """Yields each copy, when it is done."""
    os.environ["PATH"] = f"{programs()}:{os.environ['PATH']}"
    with servers_of(rows, databases) as servers, ExitStack() as stack:
        ways: dict[str, Callable[[str, str], None]] = {
            "pg_dump | psql": by_psql, "pg_restore -j2": by_restore, "subscription": by_subscription,
        }  # fmt: skip
        keeper = stack.enter_context(closing(keeper_process()))
        if _KAINITE in methods:
            before, began = processor_seconds([psutil.Process()]), time.monotonic()
            runner = stack.enter_context(_spark())
            seconds, processor = time.monotonic() - began, processor_seconds([psutil.Process()]) - before
            print(f"Spark and its workers started in {seconds:.2f} s, with {processor:.2f} s of the processor, which no"
                  " line below has in it", file=sys.stderr)  # fmt: skip
            ways[_KAINITE] = partial(by_kainite, runner, keeper)
        for database in databases:
            for method in methods * turns:
                if method == _KAINITE:
                    keeper.begin()
                yield measured(servers, database, method, ways[method])


@contextmanager
def _spark() -> Iterator[StepRunner]:
    with spark_context("local[2]", "kainite load benchmark") as context:
        runner = SparkItems(context, SparkLimits(), threading.Event(), "kainite replicate load", run_steps)
        runner.start_workers()
        yield runner


_KAINITE: Final = "kainite"
METHODS: Final = [_KAINITE, "pg_dump | psql", "pg_restore -j2", "subscription"]
_BASELINE: Final = "pg_restore -j2"


def ratios(lines: Iterable[Measured]) -> Iterator[str]:
    """Yields for each database and method the ratio of its seconds to the baseline's of the same turn, as text."""
    seconds: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        seconds.setdefault(line.database, {}).setdefault(line.method, []).append(line.seconds)
    for database, by_method in seconds.items():
        for method in [method for method in by_method if method != _BASELINE and _BASELINE in by_method]:
            found = [one / other for one, other in zip(by_method[method], by_method[_BASELINE], strict=True)]
            yield (f"{database:8} {method:15} {statistics.median(found):.2f} times the seconds of {_BASELINE}"
                   f" ({min(found):.2f} to {max(found):.2f} in {len(found)} turns)")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--databases", nargs="+", choices=list(DATABASES), default=list(DATABASES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warn_unless_quiet()
    lines: list[Measured] = []
    for line in run(given.rows, given.databases, given.methods, given.turns):
        lines.append(line)
        print(json.dumps(asdict(line)) if given.json else _text(line), flush=True)
    for text in () if given.json else ratios(lines):
        print(text)


def _text(line: Measured) -> str:
    peak = "" if line.worker_peak_mb is None else f"  worker {line.worker_peak_mb:.0f} MB"
    return (
        f"{line.database:8} {line.method:15} {line.rows:>9,} rows {line.megabytes:>7.1f} MB {line.seconds:>7.2f} s"
        f" {line.rows_a_second:>9,} rows/s {line.megabytes_a_second:>6.1f} MB/s"
        f" {line.processor_seconds:>6.2f} s of the processor{peak}"
    )


if __name__ == "__main__":
    main()
