"""Carries out the whole run: servers, initial copy, load and kills, the last application, the comparison.

In every case the processes end first, then the servers, then the work folder is removed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kainite.base.errors import DemoError, KainiteError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.store.dynamodb import DynamoDBStore
from kainite_demo import invariant, pgbench, services
from kainite_demo.compare import compare
from kainite_demo.filled_alike import fill_source, fill_target, has_mariadb, make_both
from kainite_demo.fleet_watch import FleetWatch
from kainite_demo.initial_copy import bring_rows, make_tables
from kainite_demo.json_lines import JsonLinesFile
from kainite_demo.latency import latencies, percentile
from kainite_demo.load import Load
from kainite_demo.log_watch import LogWatch
from kainite_demo.mariadb_server import BINLOG, mariadb
from kainite_demo.mariadb_tables import make_database
from kainite_demo.monitor import RunMonitor
from kainite_demo.postgres_server import postgres
from kainite_demo.processes import Process
from kainite_demo.progress import Display
from kainite_demo.run_layout import (
    CONSOLE,
    EXTRACTOR,
    DemoTarget,
    RunLayout,
    RunOptions,
    SourceKind,
    duties,
    processes,
    ready_events,
)
from kainite_demo.settings_file import LOG_PARTITION, fleet_table, log_table, write_settings
from kainite_demo.summary import RunSummary

_READY_LIMIT = 120.0
_GRACE = 15.0
# A broken run has no results to wait for, and somebody waits for the prompt.
_GRACE_OF_A_BROKEN_RUN = 2.0


def run(options: RunOptions, display: Display) -> RunSummary:
    """Runs the demo.

    Raises:
        DemoError: source and target differ, a transaction was torn, or a part broke.
    """
    started = time.monotonic()
    with _work_folder(display, keep=options.keep) as folder, _servers(folder, options, display) as layout:
        fleet = FleetWatch(
            DynamoDBFleetStore(services.dynamodb_client(layout.endpoint), fleet_table(layout)), duties(options)
        )
        with _ending(processes(layout, options), display) as running:
            _prepare(layout, options, running, fleet, display)
            monitor = _monitor(layout, options)
            load = Load(options, running, monitor, display)
            what = "pgbench's transactions on MariaDB" if options.source is SourceKind.MARIADB else "pgbench"
            display.say(f"running {what} for {options.seconds} s")
            with monitor.watching(layout.target):
                load_seconds = load.carry(layout.source.url)
            starts = fleet.starts()
        display.say("comparing source and target, row by row")
        rows = compare(layout.source.url, layout.target, pgbench.TABLES)
        return _summary(monitor, load, rows, starts, load_seconds, time.monotonic() - started)


@contextmanager
def _work_folder(display: Display, *, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kainite-demo-"))
    try:
        yield folder
    finally:
        if keep:
            display.say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _servers(folder: Path, options: RunOptions, display: Display) -> Iterator[RunLayout]:
    endpoint, servers = options.endpoint, _names(options)
    if endpoint is None:
        display.say(f"starting Kinesis and DynamoDB (moto) and {servers}")
    else:
        display.say(f"starting {servers}; at {endpoint} stream and tables are called {folder.name}")
    with (
        services.running(endpoint, folder.name) if endpoint else services.moto(folder / "moto.log") as address,
        _source(folder / "source", options.source) as source,
        _target(folder / "target", options.target) as target,
    ):
        yield RunLayout(folder, SourceSlot(source, "kainite_demo", "kainite_demo"), target, address())


def _names(options: RunOptions) -> str:
    """Returns what the databases' servers are called."""
    mariadbs = (options.source is SourceKind.MARIADB) + (options.target is DemoTarget.MARIADB)
    return ("two PostgreSQL servers", "a PostgreSQL and a MariaDB server", "two MariaDB servers")[mariadbs]


@contextmanager
def _source(folder: Path, kind: SourceKind) -> Iterator[str]:
    if kind is SourceKind.MARIADB:
        with mariadb(folder, *BINLOG) as server:
            yield make_database(server, "shop")
    else:
        with postgres(folder, wal_level="logical") as url:
            yield url


@contextmanager
def _target(folder: Path, kind: DemoTarget) -> Iterator[str]:
    if kind is DemoTarget.MARIADB:
        with mariadb(folder) as server:
            yield make_database(server, "public")  # the schema of PostgreSQL's tables
    else:
        with postgres(folder) as url:
            yield url


@contextmanager
def _ending(running: dict[str, Process], display: Display) -> Iterator[dict[str, Process]]:
    """Ends all processes at the same time; after an error shows the logs of those that had failed, else of all."""
    grace = _GRACE_OF_A_BROKEN_RUN
    try:
        yield running
        grace = _GRACE
    except KainiteError:
        ended = [process for process in running.values() if process.status]
        for process in ended or running.values():
            display.say(process.tail())
        raise
    finally:
        with ExitStack() as stack:
            for process in running.values():
                stack.callback(process.stop, grace)
            for process in running.values():
                stack.callback(process.terminate)


def _prepare(
    layout: RunLayout, options: RunOptions, running: dict[str, Process], fleet: FleetWatch, display: Display
) -> None:
    """Starts and fills everything that the load needs."""
    services.create_stream(services.kinesis_client(layout.endpoint), layout.name, options.shards)
    write_settings(layout, options)
    if has_mariadb(layout):
        make_both(layout)
    else:
        make_tables(layout, options.source)
    if not options.fleet:
        # The daemon and the apply job start slowly: they get ready during the copy.
        _start(options, running, display)
    display.say(f"filling the source (scale {options.scale}) and loading the target")
    fill_source(layout, options.scale)
    if has_mariadb(layout):
        fill_target(layout, options.scale)
    else:
        bring_rows(layout, options.source)
    invariant.make_quick(layout.target)
    if options.fleet:
        # An extractor of the fleet's starts with its daemon, and needs the slot and the offset file.
        _start(options, running, display)
    if EXTRACTOR in running:
        running[EXTRACTOR].start()
    for name, event in ready_events(options).items():
        _wait_for_event(running[name], event)
    fleet.wait_until_running(_READY_LIMIT)
    display.say(f"the console, as long as this runs: {_console(running[CONSOLE])}")


def _console(process: Process) -> str:
    """Starts the console; returns its address."""
    process.start()
    ready = _wait_for_event(process, "console ready")
    return f"http://{ready['address']}/"


def _start(options: RunOptions, running: dict[str, Process], display: Display) -> None:
    daemons = "the daemon" if options.daemons == 1 else f"{options.daemons} daemons"
    display.say(
        f"starting {daemons}{', of which the fleet starts the rest' if options.fleet else ' and the apply job'}"
    )
    for name in ready_events(options):
        if name != EXTRACTOR:
            running[name].start()


def _wait_for_event(process: Process, event: str) -> dict[str, Any]:
    log = JsonLinesFile(process.log)
    deadline = time.monotonic() + _READY_LIMIT
    while True:
        found = next((line for line in log.read() if line.get("event") == event), None)
        if found is not None:
            return found
        process.check()
        if time.monotonic() > deadline:
            raise DemoError(f"the {process.name} is not ready after {_READY_LIMIT:.0f} s")
        time.sleep(0.05)


def _monitor(layout: RunLayout, options: RunOptions) -> RunMonitor:
    store = DynamoDBStore(services.dynamodb_client(layout.endpoint), log_table(layout))
    ends = options.source is not SourceKind.DSQL
    return RunMonitor(JsonLinesFile(layout.journal), LogWatch(store, LOG_PARTITION), ends=ends)


def _summary(
    monitor: RunMonitor, load: Load, rows: int, starts: dict[str, int], load_seconds: float, seconds: float
) -> RunSummary:
    times = latencies(monitor.committed_us, monitor.applied_times.at_us)
    counts = monitor.log.counts
    assert load.standing is not None, "the load was carried"
    return RunSummary(
        transactions=monitor.applied,
        records=monitor.records,
        rows_compared=rows,
        offered_per_second=round(load.standing.offered, 1),
        units_per_second=round(monitor.applied / load_seconds, 1),
        bottleneck=load.standing.bottleneck,
        latency_p50=percentile(times, 50),
        latency_p99=percentile(times, 99),
        latency_units=len(times),
        conflicts=counts.conflicts,
        job_instances=len(counts.instances),
        snapshots_checked=monitor.invariant.looks,
        kills=dict(load.kills),
        duty_starts=starts,
        seconds=round(seconds, 1),
    )
