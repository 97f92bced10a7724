"""Measures a comparison of a source with its target: rows a second, bytes over the wire, how long units wait.

Two databases on one server, with equal tables: narrow rows, wide rows, or a hundred small tables. They are compared by

* ``kainite``: ``kainite verify``'s own job with threads, its apply job beside it, which applies nothing else meanwhile;
* ``count and checksum``: the method of pg_comparator and data-diff: for each range of the key the number of rows and
  the sum of md5 of their columns, on both sides; ranges that differ are cut again until they have 1,000 rows, whose
  hashes are then read. It takes no snapshot of both sides at one point, so it is right only while nobody writes.

Each is measured without a difference, and with one changed row in 100,000. ``wire`` counts the texts of the values that
come from both servers.

    python benchmarks/verify.py [--rows N] [--databases narrow …] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psycopg
from runs.machine import warn_unless_quiet

from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.stop_ledger import StopState
from kainite.replicate.verify_report import VerifyReport
from kainite.uow.catalogue.reflection import reflect
from kainite_demo.postgres_server import postgres
from kainite_spark.targets.postgresql.stop_requests import postgres_stop_requests
from kainite_spark.targets.stop_requests import StopRequests
from kainite_spark.verify.compare_source import PostgresCompareSource
from kainite_spark.verify.job import VerifyJob
from kainite_spark.verify.runners import ThreadItems

_SERVER: Final = {"fsync": "on", "wal_level": "logical", "max_replication_slots": "4"}
_LOG: Final = "bench/0"
_FENCE: Final = "CREATE TABLE kainite_fence (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint)"
SEGMENTS: Final = 32
"""Ranges into which the other method cuts a table, and a range that differs, as data-diff does by default."""
FEW: Final = 1000

DATABASES: Final = {
    "narrow": "CREATE TABLE t (id bigint PRIMARY KEY, v int, w int);"
    " INSERT INTO t SELECT n, n % 97, n % 1009 FROM generate_series(1, {rows}) n",
    "wide": "CREATE TABLE t (id bigint PRIMARY KEY, a text, b text, d timestamptz);"
    " INSERT INTO t SELECT n, repeat(md5(n::text), 10), repeat(md5(n::text), 15), '2026-01-01' FROM"
    " generate_series(1, {rows} / 10) n",
    "hundred": "DO $$ BEGIN FOR k IN 1..100 LOOP EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY, v text)', k);"
    " EXECUTE format('INSERT INTO t%s SELECT n, md5(n::text) FROM generate_series(1, {rows} / 1000) n', k);"
    " END LOOP; END $$",
}


@dataclass(frozen=True)
class Measured:
    """One comparison.

    Attributes:
        database, method: what was compared, and how.
        differing: how many rows differed, and were found.
        rows: how many rows the source has.
        seconds: how long it took.
        rows_a_second: of these.
        wire_bytes: how many bytes of values came from both sides.
        held_ms: for how many milliseconds the apply job stood still; None for the other method.
    """

    database: str
    method: str
    differing: int
    rows: int
    seconds: float
    rows_a_second: int
    wire_bytes: int
    held_ms: int | None


def execute(url: str, *statements: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return rows


def by_kainite(ends: ReplicaEnds) -> tuple[int, int, int | None]:
    with applying(ends.target), psycopg.connect(ends.target, autocommit=True) as connection:
        report: VerifyReport = VerifyJob(
            PostgresCompareSource(ends, lambda _: ThreadItems()), connection, reflect(ends.target)
        ).run()
    assert not report.left_out
    return sum(table.different for table in report.tables), report.wire_bytes, report.held_ms


@contextmanager
def applying(url: str) -> Iterator[None]:
    """Answers a comparison as an apply job without units does: it stands at the point at once."""
    execute(url, "DROP TABLE IF EXISTS kainite_fence", _FENCE, f"INSERT INTO kainite_fence VALUES ('{_LOG}', 1, 1)")
    requests, over = postgres_stop_requests(url, _LOG), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(_answer, requests, over)
        try:
            yield
        finally:
            over.set()
            answering.result()
            requests.close()


def _answer(requests: StopRequests, over: threading.Event) -> None:
    while not over.wait(0.02):
        found = requests.look()
        if found is None:
            continue
        if found.state is StopState.ASKED:
            requests.attend(found.number, 1)
        elif found.state is StopState.ATTENDED and found.position is not None:
            began = time.monotonic()
            requests.stopped(found.number, 1, 1, ())
            while (now := requests.look()) is not None and now.state is StopState.STOPPED:
                over.wait(0.005)
            requests.go_on(found.number, 1, round((time.monotonic() - began) * 1000))


@dataclass
class CountAndChecksum:
    """Compares the tables of two databases by ranges of their first column."""

    urls: tuple[str, str]
    wire_bytes: int = 0

    def run(self, tables: list[str]) -> int:
        """Returns how many rows differ."""
        with ThreadPoolExecutor(2) as pool:
            self._pool = pool
            with psycopg.connect(self.urls[0]) as one, psycopg.connect(self.urls[1]) as other:
                self._sides = (one, other)
                return sum(self._table(table) for table in tables)

    def _table(self, table: str) -> int:
        names = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
        columns = [name for (name,) in self._sides[0].execute(names, [table])]
        bounds = self._both(f"SELECT min(id), max(id) FROM {table}")
        low, high = min(side[0][0] for side in bounds), max(side[0][1] for side in bounds)
        row = " || '|' || ".join(f"coalesce({name}::text, 'NULL')" for name in columns)
        return self._range(table, row, low, high + 1)

    def _range(self, table: str, row: str, low: int, high: int) -> int:
        if high - low <= FEW:
            rows = [
                dict(side)
                for side in self._both(f"SELECT id, md5({row}) FROM {table} WHERE id >= {low} AND id < {high}")
            ]
            return sum(rows[0].get(key) != rows[1].get(key) for key in rows[0].keys() | rows[1].keys())
        size = -(-(high - low) // SEGMENTS)
        total = f"sum(('x' || right(md5({row}), 15))::bit(60)::bigint)"
        query = (f"SELECT (id - {low}) / {size}, count(*), {total} FROM {table} WHERE id >= {low} AND id < {high}"
                 " GROUP BY 1")  # fmt: skip
        sides = [{place: found for place, *found in side} for side in self._both(query)]
        differ = [place for place in sides[0].keys() | sides[1].keys() if sides[0].get(place) != sides[1].get(place)]
        return sum(self._range(table, row, low + place * size, min(low + (place + 1) * size, high)) for place in differ)

    def _both(self, query: str) -> list[list[tuple]]:  # type: ignore[type-arg]
        found = list(self._pool.map(lambda side: side.execute(query.encode()).fetchall(), self._sides))
        self.wire_bytes += sum(len(str(value)) for side in found for one in side for value in one)
        return found


def by_checksums(ends: ReplicaEnds) -> tuple[int, int, int | None]:
    names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 't%' ORDER BY 1"
    tables = [str(name) for (name,) in execute(ends.source.url, names)]
    compared = CountAndChecksum((ends.source.url, ends.target))
    return compared.run(tables), compared.wire_bytes, None


METHODS: Final[dict[str, Callable[[ReplicaEnds], tuple[int, int, int | None]]]] = {
    "kainite": by_kainite,
    "count and checksum": by_checksums,
}


def run(rows: int, databases: list[str]) -> Iterator[Measured]:
    """Yields each comparison, when it is done."""
    with (
        tempfile.TemporaryDirectory(prefix="kainite-verify-") as folder,
        postgres(Path(folder) / "pg", **_SERVER) as url,
    ):
        for database in databases:
            source, target = (url.replace("/postgres?", f"/{side}_{database}?") for side in ("source", "target"))
            for side in ("source", "target"):
                execute(url, f"CREATE DATABASE {side}_{database}")
            for one in (source, target):
                execute(one, DATABASES[database].format(rows=rows), "VACUUM ANALYZE", "CHECKPOINT")
            execute(source, "CREATE PUBLICATION p FOR ALL TABLES")
            ends = ReplicaEnds(SourceSlot(source, f"s_{database}", "p"), target, _LOG)
            with create_slot(ends.source):
                pass
            yield from _measured(ends, database)
            table = "t1" if database == "hundred" else "t"
            execute(target, f"UPDATE {table} SET id = -id WHERE id % 100000 = 7")
            execute(target, f"DELETE FROM {table} WHERE id < 0")
            yield from _measured(ends, database)
            execute(source, f"SELECT pg_drop_replication_slot('s_{database}')")


def _measured(ends: ReplicaEnds, database: str) -> Iterator[Measured]:
    counted = "SELECT coalesce(sum(n_live_tup), 0)::bigint FROM pg_stat_user_tables"
    [(rows,)] = execute(ends.source.url, counted)
    assert isinstance(rows, int)
    for name, method in METHODS.items():
        began = time.monotonic()
        differing, wire, held = method(ends)
        seconds = time.monotonic() - began
        yield Measured(database, name, differing, rows, round(seconds, 2), round(rows / seconds), wire, held)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--databases", nargs="+", choices=list(DATABASES), default=list(DATABASES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warn_unless_quiet()
    found = list(_told(run(given.rows, given.databases), quiet=given.json))
    if given.json:
        print(json.dumps([asdict(line) for line in found]))


def _told(lines: Iterator[Measured], *, quiet: bool) -> Iterator[Measured]:
    for line in lines:
        if not quiet:
            held = "" if line.held_ms is None else f"  apply job held {line.held_ms} ms"
            print(
                f"{line.database:8} {line.method:18} {line.differing:>3} differ {line.rows:>9,} rows"
                f" {line.seconds:>6.2f} s {line.rows_a_second:>9,} rows/s {line.wire_bytes / 1024:>8.1f} KiB{held}",
                flush=True,
            )
        yield line


if __name__ == "__main__":
    main()
