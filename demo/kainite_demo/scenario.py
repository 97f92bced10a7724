"""The whole run: parts up, load on, kills, load off, everything applied, source and target compared.

Whatever happens on the way, the processes end first, then the servers, then the work folder goes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from kainite.errors import DemoError, KainiteError
from kainite.log.dynamodb_store import DynamoDBStore

from kainite_demo import extractor_state, pgbench, services
from kainite_demo.compare import compare
from kainite_demo.extractor_state import Progress
from kainite_demo.invariant import InvariantChecker
from kainite_demo.json_lines import JsonLines
from kainite_demo.killer import Killer
from kainite_demo.latency import AppliedTimes, latencies, percentile
from kainite_demo.log_watch import LogWatch
from kainite_demo.monitor import Monitor
from kainite_demo.processes import Process
from kainite_demo.progress import Display
from kainite_demo.replication import SourceSlot, create_slot
from kainite_demo.settings_file import Places, write_settings
from kainite_demo.summary import Summary

_READY_LIMIT = 60.0
_DRAIN_LIMIT = 120.0
_TICK = 0.25
_GRACE = 15.0
_KILLS_A_RUN = 6
_READY = {"daemon": "daemon ready", "apply job": "apply job started", "extractor": "started"}


@dataclass(frozen=True, slots=True)
class Options:
    """The size of a run: seconds and clients of pgbench, transactions a second, shards, scale."""

    seconds: int
    shards: int
    clients: int
    scale: int
    rate: int
    seed: int
    kill: bool
    keep: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands while the processes run."""

    folder: Path
    source: SourceSlot
    target: str
    endpoint: str
    stream: str = "demo"

    @property
    def settings(self) -> Path:
        return self.folder / "demo.properties"

    @property
    def state(self) -> Path:
        return self.folder / "extractor.state"


def run(options: Options, display: Display) -> Summary:
    """Run the demo.

    Raises:
        DemoError: source and target differ, a transaction was torn, or a part broke.
    """
    started = time.monotonic()
    with _work_folder(display, keep=options.keep) as folder, _servers(folder, display) as parts:
        with _running(_processes(parts, options), display) as processes:
            _prepare(parts, options, processes, display)
            with InvariantChecker(parts.target) as checker:
                monitor = _monitor(parts, processes["extractor"], checker)
                load = _Load(parts, options, processes, monitor, display)
                seconds = load.carry()
                checker.check()
        display.say("comparing source and target, row by row")
        rows = compare(parts.source.url, parts.target, pgbench.TABLES)
        return _summary(monitor, load.kills, rows, seconds, time.monotonic() - started)


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
def _servers(folder: Path, display: Display) -> Iterator[Parts]:
    display.say("starting Kinesis and DynamoDB (moto) and two PostgreSQL servers")
    with (
        services.moto(folder / "moto.log") as moto,
        services.postgres(folder / "source", wal_level="logical") as source,
        services.postgres(folder / "target") as target,
    ):
        yield Parts(folder, SourceSlot(source, "kainite_demo", "kainite_demo"), target, moto.address())


def _processes(parts: Parts, options: Options) -> dict[str, Process]:
    kainite = [sys.executable, "-m", "kainite", "--log-format", "json"]
    settings = ["-p", str(parts.settings)]
    source = parts.source
    extract = {
        "source": source.url,
        "slot": source.slot,
        "publication": source.publication,
        "stream": parts.stream,
        "state": str(parts.state),
        "shards": str(options.shards),
        "kinesis-endpoint": parts.endpoint,
        "region": services.REGION,
    }
    load = pgbench.run_command(source.url, options.clients, options.seconds, options.rate, options.seed)
    commands: dict[str, Sequence[str]] = {
        "precedence": [*kainite, "precedence", *settings, "--write", str(parts.folder / "catalogue.json")],
        "daemon": [*kainite, "run", *settings],
        "apply job": [*kainite, "apply", *settings],
        "extractor": [sys.executable, "-m", "kainite_demo.extractor", *_flags(extract)],
        "pgbench": load,
    }
    env = services.environment(parts.folder)
    return {name: Process(name, command, parts.folder, env) for name, command in commands.items()}


def _flags(options: dict[str, str]) -> list[str]:
    return [part for name, value in options.items() for part in (f"--{name}", value)]


@contextmanager
def _running(processes: dict[str, Process], display: Display) -> Iterator[dict[str, Process]]:
    """Ends them all; after an error shows the logs of those that ended by themselves, else of all."""
    with ExitStack() as stack:
        for process in processes.values():
            stack.callback(process.stop, _GRACE)
        try:
            yield processes
        except KainiteError:
            ended = [process for process in processes.values() if process.status]
            for process in ended or processes.values():
                display.say(process.tail())
            raise


def _prepare(parts: Parts, options: Options, processes: dict[str, Process], display: Display) -> None:
    """Everything up to the moment when the load may begin. Slow starters get ready during the copy."""
    services.create_stream(services.kinesis_client(parts.endpoint), parts.stream, options.shards)
    pgbench.create_tables(parts.target)
    write_settings(parts.settings, Places(parts.folder, parts.endpoint, services.REGION, parts.stream, parts.target))
    processes["precedence"].start()
    processes["precedence"].wait(_READY_LIMIT)
    display.say("starting the daemon and the apply job")
    for name in ("daemon", "apply job"):
        processes[name].start()
    display.say(f"filling the source (scale {options.scale}) and copying it to the target")
    _initial_copy(parts, options.scale)
    processes["extractor"].start()
    for name, event in _READY.items():
        _wait_for_event(processes[name], event)


def _initial_copy(parts: Parts, scale: int) -> None:
    """The slot's transactions are those that the copied snapshot does not hold, whatever runs meanwhile."""
    pgbench.fill(parts.source.url, scale)
    pgbench.publish(parts.source.url, parts.source.publication)
    with create_slot(parts.source) as slot:
        pgbench.copy_tables(parts.source.url, parts.target, slot.snapshot)
    extractor_state.save(parts.state, Progress(parts.source.slot, slot.lsn, 0))


def _wait_for_event(process: Process, event: str) -> None:
    lines = [JsonLines(process.log), JsonLines(process.output)]
    deadline = time.monotonic() + _READY_LIMIT
    while not any(line.get("event") == event for source in lines for line in source.read()):
        process.check()
        if time.monotonic() > deadline:
            raise DemoError(f"the {process.name} is not ready after {_READY_LIMIT:.0f} s")
        time.sleep(0.05)


def _monitor(parts: Parts, extractor: Process, checker: InvariantChecker) -> Monitor:
    store = DynamoDBStore(services.dynamodb_client(parts.endpoint), "kainite-demo-log")
    return Monitor(JsonLines(extractor.output), LogWatch(store, "0"), AppliedTimes(parts.target), checker)


class _Load:
    """The time of the load: pgbench running, processes being killed, until all of it is applied."""

    def __init__(
        self, parts: Parts, options: Options, processes: dict[str, Process], monitor: Monitor, display: Display
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._parts = parts
        self._processes = processes
        self._monitor = monitor
        self._display = display
        self._started = time.monotonic()
        victims = tuple(_READY) if options.kill else ()
        self._killer = Killer(victims, options.seconds / _KILLS_A_RUN, options.seed)

    def carry(self) -> float:
        """Run pgbench to its end, and wait until the target has everything; returns the seconds."""
        load = self._processes["pgbench"]
        self._display.say("running pgbench")
        self._started = time.monotonic()
        load.start()
        with self._display.figures():
            while load.status is None:
                self._tick()
            load.wait(0)
            return self._drain(_history_rows(self._parts.source.url))

    def _drain(self, transactions: int) -> float:
        """Until all of them are in the target, and the log says so; returns the seconds up to the former."""
        deadline = time.monotonic() + _DRAIN_LIMIT
        applied_at = None
        while applied_at is None or self._monitor.log.counts.committed < transactions:
            self._tick()
            if applied_at is None and self._monitor.applied >= transactions:
                applied_at = time.monotonic()
            if time.monotonic() > deadline:
                applied = self._monitor.applied
                raise DemoError(f"{applied} of {transactions} transactions are applied after {_DRAIN_LIMIT:.0f} s")
        return applied_at - self._started

    def _tick(self) -> None:
        time.sleep(_TICK)
        for victim in self._killer.choose(time.monotonic(), self._monitor.done):
            self._kill(victim)
        for name in _READY:
            self._processes[name].check()
        self._display.show(self._monitor.poll(self.kills.total()))
        for tid, cause in self._monitor.log.counts.failed.items():
            raise DemoError(f"unit {tid} was not applied: {cause}")

    def _kill(self, victim: str) -> None:
        self.kills[victim] += 1
        self._display.say(f"{time.monotonic() - self._started:4.0f} s  killing the {victim} and starting it again")
        self._processes[victim].kill()
        self._processes[victim].start()


def _history_rows(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
    assert row is not None
    return int(row[0])


def _summary(monitor: Monitor, kills: Counter[str], rows: int, load_seconds: float, seconds: float) -> Summary:
    times = latencies(monitor.committed_us, monitor.target.at_us)
    counts = monitor.log.counts
    return Summary(
        transactions=monitor.applied,
        records=monitor.records,
        rows_compared=rows,
        units_per_second=round(monitor.applied / load_seconds, 1),
        latency_p50=percentile(times, 50),
        latency_p99=percentile(times, 99),
        latency_units=len(times),
        conflicts=counts.conflicts,
        job_instances=len(counts.instances),
        snapshots_checked=monitor.checker.looks,
        kills=dict(kills),
        seconds=round(seconds, 1),
    )
