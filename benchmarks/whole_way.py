"""Measures the whole way: a stream, ``kainite run`` with its record processors, the log, ``kainite apply``, PostgreSQL.

Everything runs as in production, on this machine: a daemon with children of ``amazon_kclpy`` (the record processor of
PostgreSQL's changes), the log in DynamoDB's double (moto's server, or any DynamoDB named with ``--endpoint``), the
apply job on Spark (``local[2]``), and a PostgreSQL server with ``fsync`` and ``synchronous_commit`` on and all
constraints. The stream is served out of memory: records that were rendered beforehand, so that it costs next to
nothing. Two mixes:

* *TPC-B*: three updates (an account, one of 200 tellers, one of 20 branches) and an insert, with foreign keys;
* *order entry*: an order with three lines and a shipment, and three updates of stock; five levels of foreign keys.

Measured are units a second from the first record to the last commit with everything on the stream from the beginning
(``backlog``), and at fixed rates the time from a unit's arrival on the stream to its commit in the log, and from there
to its commit in the target. Processor time is that of the processes, by kind, divided by the units; memory is the
kernel's peak (VmHWM), summed over a kind's processes.

Baselines, in the same run, with the same transactions and the same kind of server:

* PostgreSQL's own replication: ``CREATE SUBSCRIPTION`` between two servers, one worker, which checks no foreign keys;
* the script that is written today: Structured Streaming with ``foreachBatch`` and upserts by table, from files, which
  loses the transactions' bounds.

    python benchmarks/whole_way.py [--mixes tpcb orders] [--units N] [--rates R …] [--seconds S] [--shards N]
                                   [--idle S] [--endpoint URL] [--no-baselines] [--json]

``--units 0`` leaves the backlog out. At a rate, the table also has the processors that each kind of process keeps busy,
how often its threads wake up, and the micro-batches: how many units they had, how long they took, and how much of that
was applying. ``--idle`` measures the same without a unit.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import javaproperties
import psutil
import psycopg
from runs.machine import warn_unless_quiet
from whole_way_parts.daemon import await_events, daemon_settings
from whole_way_parts.processes import cpu_of, peak_mb_of, pipeline, postgres_tree, wakeups_of
from whole_way_parts.units import MIXES, Mix, records, rendered, statement, uow

from kainite.log.state.loading import read_from_low
from kainite.log.views.unit_times import load_units
from kainite.store.dynamodb import DynamoDBStore
from kainite_demo import services
from kainite_demo.json_lines import JsonLinesFile
from kainite_demo.latency import percentile
from kainite_demo.postgres_server import postgres
from kainite_demo.processes import Process

HERE = Path(__file__).parent
APPLICATION, LOG_TABLE = "whole-way", "whole-way-log"
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on"}
FILE_UNITS = 2_000
SETTLING_S = 10.0
LIMIT_S = 600.0
LOOKED_AT = 10_000
"""How many more units are committed until the log is read: its owner truncates it behind two snapshots."""
PERCENTS = (50, 99, 100)


@dataclass(frozen=True, slots=True)
class Result:
    """One run; latencies in seconds, at p50, p99 and the most.

    Attributes:
        rate: units that arrived a second; 0 for a backlog.
        per_second: units a second until the last commit.
        cpu_us: microseconds of processor time a unit, by kind of process.
        peak_mb: peak memory in MB, by kind of process.
        to_log, to_target: the times from the arrival to the log, and from the log to the target's commit.
        latency: the time from the arrival to the target's commit.
        busy: processors that each kind of process kept busy.
        wakeups: how often a second threads of each kind began to wait.
        batches: the apply job's micro-batches: their number, and the medians of units, milliseconds, and Spark's part.
    """

    name: str
    mix: str
    rate: float
    units: int
    per_second: float
    cpu_us: dict[str, float] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    to_log: tuple[float, ...] = ()
    to_target: tuple[float, ...] = ()
    latency: tuple[float, ...] = ()
    busy: dict[str, float] = field(default_factory=dict)
    wakeups: dict[str, float] = field(default_factory=dict)
    batches: tuple[float, ...] = ()


def run_kainite(mix: Mix, units: int, rate: float, shards: int, endpoint: str | None, seconds: float = 0.0) -> Result:
    """Runs the whole way once, on parts of its own; without units for some seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kww-", ignore_cleanup_errors=True)))
        target = stack.enter_context(filled(folder / "target", mix))
        given = nullcontext(lambda: endpoint) if endpoint else services.moto(folder / "moto.log")
        dynamodb = stack.enter_context(given)()
        assert dynamodb is not None
        write_stream(folder, mix, units, shards)
        stream, port = stack.enter_context(served(folder, shards, rate))
        daemon, job = start(stack, folder, target, f"http://127.0.0.1:{port}", dynamodb)
        kinds = pipeline(daemon.pid, job.pid, stream.pid, _store_pid())
        kinds["PostgreSQL"] = postgres_tree(folder / "target")
        if not units:
            return idle(mix, kinds, seconds)
        before, woken, go = cpu_of(kinds), wakeups_of(kinds), time.time()
        (folder / "go").write_text(str(go))
        times = LoggedTimes(DynamoDBStore(services.dynamodb_client(dynamodb), LOG_TABLE))
        await_applied(units, daemon, job, times)
        waits = wakeups_of(kinds)
        kinds["PostgreSQL"] = postgres_tree(folder / "target")
        after = cpu_of(kinds)
        found = times.of_all(units)
        last = max(applied for _, applied in found.values())
        arrived = {uow(number): go + (number / rate if rate else 0.0) for number in range(1, units + 1)}
        return Result(
            name="Kainite", mix=mix.name, rate=rate, units=units, per_second=units / (last - go),
            cpu_us={kind: round((after[kind] - before[kind]) / units * 1e6, 1) for kind in after},
            peak_mb=peak_mb_of(kinds),
            to_log=percentiles(found[name][0] - at for name, at in arrived.items()),
            to_target=percentiles(applied - logged for logged, applied in found.values()),
            latency=percentiles(found[name][1] - at for name, at in arrived.items()),
            busy={kind: round((after[kind] - before[kind]) / (last - go), 3) for kind in after},
            wakeups={kind: round((waits[kind] - woken[kind]) / (last - go), 1) for kind in waits},
            batches=batches_of(job),
        )  # fmt: skip


def idle(mix: Mix, kinds: Mapping[str, Sequence[psutil.Process]], seconds: float) -> Result:
    """Measures processes that have nothing to do."""
    time.sleep(SETTLING_S)
    before, woken, began = cpu_of(kinds), wakeups_of(kinds), time.monotonic()
    time.sleep(seconds)
    after, waits, took = cpu_of(kinds), wakeups_of(kinds), time.monotonic() - began
    return Result(
        name="Kainite", mix=mix.name, rate=0.0, units=0, per_second=0.0,
        busy={kind: round((after[kind] - before[kind]) / took, 4) for kind in after},
        wakeups={kind: round((waits[kind] - woken[kind]) / took, 1) for kind in waits},
    )  # fmt: skip


def batches_of(job: Process) -> tuple[float, ...]:
    """Returns the figures of the micro-batches that the apply job logged."""
    told = [line for line in JsonLinesFile(job.log).read() if line.get("event") == "micro-batch"]
    return (len(told), *(median(float(line[name]) for line in told) for name in ("units", "ms", "spark_ms")))


def percentiles(values: Iterator[float]) -> tuple[float, ...]:
    ascending = sorted(values)
    found = (percentile(ascending, percent) for percent in PERCENTS)
    return tuple(round(value, 3) for value in found if value is not None)


@contextmanager
def filled(folder: Path, mix: Mix, **settings: str) -> Iterator[str]:
    """Runs a server with the mix's tables and first rows; gives its URL."""
    with postgres(folder, **{**DURABLE, **settings}) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(mix.schema.encode())
            connection.execute(mix.filling.encode())
            connection.execute("VACUUM ANALYZE")
        yield url


def write_stream(folder: Path, mix: Mix, units: int, shards: int) -> None:
    """Renders the records of all units, each unit's on one shard."""
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"shard-{shard}").open("wb")) for shard in range(shards)]
        sequence = 0
        for number, transaction in enumerate(mix.transactions(units), 1):
            for data in records(number, transaction):
                sequence += 1
                files[number % shards].write(b"%d %s\n" % (number, rendered(sequence, uow(number), data)))


@contextmanager
def served(folder: Path, shards: int, rate: float) -> Iterator[tuple[psutil.Popen, int]]:
    """Runs the stream; gives its process and its port."""
    command = [sys.executable, str(HERE / "whole_way_parts" / "stream.py"), str(folder), str(shards), str(rate)]
    process = psutil.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def start(stack: ExitStack, folder: Path, target: str, kinesis: str, dynamodb: str) -> tuple[Process, Process]:
    """Starts the daemon and the apply job, and waits until both are ready."""
    settings = folder / "app.properties"
    values = daemon_settings(APPLICATION, kinesis, dynamodb, folder)
    values |= {"metricsPort": "0", "target": target, "applyMaster": "local[2]"}
    settings.write_text(javaproperties.dumps(values, timestamp=False))
    kainite = [sys.executable, "-m", "kainite", "--log-format", "json"]
    env = services.environment(folder)
    commands = {"daemon": "run", "apply job": "apply"}
    parts = [Process(name, [*kainite, word, "-p", str(settings)], folder, env) for name, word in commands.items()]
    catalogue = Process(
        "catalogue", [*kainite, "precedence", "-p", str(settings), "--write", values["catalogueFile"]], folder, env
    )
    catalogue.start()
    catalogue.wait(LIMIT_S)
    for part in parts:
        stack.callback(part.stop, 5.0)
        part.start()
    for part, event in zip(parts, ("daemon ready", "apply job started"), strict=True):
        await_events(part, (event,), LIMIT_S)
    daemon, job = parts
    return daemon, job


def await_applied(units: int, daemon: Process, job: Process, times: LoggedTimes) -> None:
    """Waits until the apply job has told that all units are committed."""
    log, committed, looked, end = JsonLinesFile(job.log), 0, 0, time.monotonic() + LIMIT_S
    while committed < units:
        time.sleep(0.25)
        committed += sum(line["committed"] for line in log.read() if line.get("event") == "micro-batch")
        if committed < units and committed - looked >= LOOKED_AT:
            times.look()
            looked = committed
        if time.monotonic() > end or any(part.status is not None for part in (daemon, job)):
            raise SystemExit(f"{committed} of {units} units\n{daemon.tail()}\n{job.tail()}")


class LoggedTimes:
    """Reads from the log when each unit was in it, and when it was committed, before the owner truncates it."""

    def __init__(self, store: DynamoDBStore) -> None:
        self._store = store
        self._times: dict[str, tuple[float, float]] = {}

    def look(self) -> None:
        """Remembers the times of the committed units that are in the log now."""
        found = read_from_low(self._store, "0", partial(load_units, self._store, "0"))
        for unit in found.units.values():
            known = found.of(unit.tid)
            if known.dispatched_ms is not None and known.applied_ms is not None:
                self._times[unit.uow] = known.dispatched_ms / 1000, known.applied_ms / 1000

    def of_all(self, units: int) -> dict[str, tuple[float, float]]:
        """Waits until the log has told the times of so many units; returns them, in seconds since the epoch."""
        end = time.monotonic() + LIMIT_S
        while len(self._times) < units:
            if time.monotonic() > end:
                raise SystemExit(f"the log has the times of {len(self._times)} of {units} units")
            self.look()
        return self._times


def _store_pid() -> int:
    """Returns moto's process, or this one where DynamoDB is somebody else's."""
    own = psutil.Process()
    found = [child for child in own.children() if "kainite_demo.moto_process" in child.cmdline()]
    return found[0].pid if found else own.pid


def run_subscription(mix: Mix, units: int) -> Result:
    """Measures PostgreSQL's own logical replication on the same transactions, committed before it begins."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kww-", ignore_cleanup_errors=True)))
        source = stack.enter_context(filled(folder / "source", mix, wal_level="logical", synchronous_commit="off"))
        target = stack.enter_context(filled(folder / "target", mix))
        with psycopg.connect(source, autocommit=True) as publisher, psycopg.connect(target, autocommit=True) as other:
            publisher.execute("CREATE PUBLICATION p FOR ALL TABLES")
            publisher.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
            options = "copy_data = false, enabled = false, create_slot = false, slot_name = 's'"
            conninfo = f"host={folder / 'source'} user=postgres dbname=postgres"
            other.execute(f"CREATE SUBSCRIPTION s CONNECTION '{conninfo}' PUBLICATION p WITH ({options})".encode())
            commit_all(source, mix, units)
            before = cpu_of({"target": postgres_tree(folder / "target")})["target"]
            began = time.monotonic()
            other.execute("ALTER SUBSCRIPTION s ENABLE")
            while not _has(other, mix, units):
                time.sleep(0.02)
            seconds = time.monotonic() - began
            after = cpu_of({"target": postgres_tree(folder / "target")})["target"]
            other.execute("ALTER SUBSCRIPTION s DISABLE")
        cpu = {"PostgreSQL": round((after - before) / units * 1e6, 1)}
        return Result("CREATE SUBSCRIPTION", mix.name, 0, units, units / seconds, cpu)


def commit_all(source: str, mix: Mix, units: int) -> None:
    """Makes the mix's transactions at the source, each one committed."""
    with psycopg.connect(source, autocommit=True) as connection:
        for transaction in mix.transactions(units):
            with connection.transaction(), connection.pipeline():
                for change in transaction:
                    sql, values = statement(change)
                    connection.execute(sql.encode(), values)


def _has(connection: psycopg.Connection, mix: Mix, units: int) -> bool:
    row = connection.execute(f"SELECT max(id) FROM {mix.last}".encode()).fetchone()
    return row is not None and row[0] == units


def run_foreach_batch(mix: Mix, units: int) -> Result:
    """Measures ``foreachBatch`` with upserts by table, from files with the same changes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kww-", ignore_cleanup_errors=True)))
        target = stack.enter_context(filled(folder / "target", mix))
        (folder / "files").mkdir()
        transactions = mix.transactions(units)
        number = 0
        while chunk := list(islice(transactions, FILE_UNITS)):
            rows = (
                json.dumps({"table": change.table, "row": json.dumps({**change.key, **change.row})})
                for transaction in chunk
                for change in transaction
            )
            (folder / "files" / f"{number:06d}.json").write_text("\n".join(rows))
            number += 1
        script = str(HERE / "whole_way_parts" / "foreach_batch.py")
        before = cpu_of({"target": postgres_tree(folder / "target")})["target"]
        done = subprocess.run(
            [sys.executable, script, str(folder / "files"), target, json.dumps(mix.tables)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        after = cpu_of({"target": postgres_tree(folder / "target")})["target"]
        with psycopg.connect(target) as connection:
            assert _has(connection, mix, units), "foreachBatch has not written all"
        cpu = {"PostgreSQL": round((after - before) / units * 1e6, 1)}
        return Result("foreachBatch, upserts by table", mix.name, 0, units, units / float(done.stdout), cpu)


def run(options: argparse.Namespace) -> Iterator[Result]:
    for name in options.mixes:
        mix = MIXES[name]
        if options.units:
            yield run_kainite(mix, options.units, 0, options.shards, options.endpoint)
        if options.idle:
            yield run_kainite(mix, 0, 0, options.shards, options.endpoint, options.idle)
        for rate in options.rates:
            units = max(1, int(rate * options.seconds))
            yield run_kainite(mix, units, rate, options.shards, options.endpoint)
        if options.baselines and options.units:
            yield run_subscription(mix, options.units)
            yield run_foreach_batch(mix, options.units)


def show(result: Result) -> None:
    offered = f"{result.rate:,.0f} units/s" if result.rate else "backlog" if result.units else "idle"
    print(f"{result.name}, {result.mix}, {offered}: {result.per_second:,.0f} units/s", flush=True)
    if result.batches:
        number, units, took, spark = result.batches
        print(f"    {number:,.0f} batches, medians: {units:,.0f} units, {took:.0f} ms, Spark's job {spark:.0f} ms")
    if result.rate:
        for what, values in (
            ("to the log", result.to_log),
            ("log to target", result.to_target),
            ("all", result.latency),
        ):
            print(f"    {what:20} p50 {values[0]:7.3f} s   p99 {values[1]:7.3f} s   most {values[2]:7.3f} s")
    for kind, wakeups in result.wakeups.items() if not result.units else ():
        print(f"    {kind:24}{result.busy[kind]:9.4f} processors {wakeups:9,.1f} wake-ups a second")
    for kind, cpu in result.cpu_us.items():
        peak = f"{result.peak_mb[kind]:9,.0f} MB" if kind in result.peak_mb else ""
        busy = f"{result.busy[kind]:7.3f} processors {result.wakeups[kind]:7,.0f} wake-ups/s" if result.rate else ""
        print(f"    {kind:24}{cpu:9,.0f} µs of processor time a unit{peak}{busy}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixes", nargs="+", choices=sorted(MIXES), default=["tpcb", "orders"])
    parser.add_argument("--units", type=int, default=20_000, help="of the backlog, and of the baselines")
    parser.add_argument("--rates", type=float, nargs="*", default=[100, 500, 1000], help="units a second")
    parser.add_argument("--seconds", type=float, default=30, help="how long each rate lasts")
    parser.add_argument(
        "--idle", type=float, default=0.0, help="also measure what having nothing to do costs, so many seconds"
    )
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--endpoint", help="address of a DynamoDB; moto's server by default")
    parser.add_argument("--no-baselines", dest="baselines", action="store_false")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    results = []
    for result in run(options):
        results.append(asdict(result))
        if not options.json:
            show(result)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
