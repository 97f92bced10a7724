"""Several real daemons of one application on this host: started, stopped, killed, paused; and the record of their
calls.

A writer puts numbered records all the time, and a watcher reads the lease table all the time. Children write down each
call (``tests/children/recorder.py``). From these records :class:`Fleet` computes which records were delivered, for how
long two children held one shard, and whether a checkpoint went back.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import psutil

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable

RECORDER = Path(__file__).parents[1] / "children" / "recorder.py"
LIMIT = 60.0
"""Seconds that a test waits for the fleet to get somewhere."""

PUT_EVERY = 0.05
LOOK_EVERY = 0.02

Span: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Call:
    """One processRecords call, as its child wrote it down."""

    shard: str
    worker: str
    pid: int
    began: float
    ended: float
    numbers: tuple[int, ...]


@dataclass
class Daemon:
    """One ``kainite run``. ``pauses`` are the times at which it and its children were stopped."""

    worker: str
    process: subprocess.Popen[bytes]
    log: Path
    pauses: list[Span] = field(default_factory=list)
    paused: list[psutil.Process] = field(default_factory=list)
    paused_at: float | None = None

    @property
    def running(self) -> bool:
        return self.process.poll() is None and self.paused_at is None

    def family(self) -> list[psutil.Process]:
        """Returns the processes of the daemon and its children, the daemon first."""
        with suppress(psutil.NoSuchProcess):
            daemon = psutil.Process(self.process.pid)
            return [daemon, *daemon.children(recursive=True)]
        return []

    def pause(self) -> None:
        """Sends SIGSTOP to the daemon and its children; to the daemon first, so that it starts no more children."""
        self.process.send_signal(signal.SIGSTOP)
        self.paused = self.family()
        for process in self.paused[1:]:
            _signal(process, signal.SIGSTOP)
        self.paused_at = time.monotonic()

    def wake(self) -> None:
        assert self.paused_at is not None
        self.pauses.append((self.paused_at, time.monotonic()))
        self.paused_at = None
        for process in reversed(self.paused):
            _signal(process, signal.SIGCONT)

    def leave(self) -> None:
        """Sends SIGTERM and waits until the daemon has ended.

        A daemon that has not begun yet has no handler of signals: SIGTERM ends its interpreter.
        """
        self.process.terminate()
        status = self.process.wait(LIMIT)
        begun = self.log.stat().st_size > 0
        assert status == 0 or (status == -signal.SIGTERM and not begun)

    def kill(self) -> None:
        """Sends SIGKILL to the daemon alone, and waits until its children have noticed and ended."""
        family = self.family()
        self.process.kill()
        self.process.wait(LIMIT)
        _, alive = psutil.wait_procs(family, LIMIT)
        assert not alive, "children outlive their daemon"

    def end(self) -> None:
        """Kills all processes, whatever their state."""
        family = [*self.family(), *self.paused]
        for process in family:
            _signal(process, signal.SIGKILL)
        self.process.wait(LIMIT)
        psutil.wait_procs(family, LIMIT)


@dataclass
class Fleet:
    """One stream, one lease table, and the daemons on it; made by :func:`fleet`."""

    kinesis: Any
    table: LeaseTable
    endpoint: str
    folder: Path
    shards: int
    failover: float
    daemons: list[Daemon] = field(default_factory=list)
    put: list[int] = field(default_factory=list)
    leases: tuple[Lease, ...] = ()
    backwards: list[str] = field(default_factory=list)
    more: Mapping[str, str] = field(default_factory=dict)
    emits: str = ""

    def join(self, worker: str, stderr: int | None = None) -> Daemon:
        """Starts a daemon without waiting for it; it logs to ``stderr``, by default to a file in the folder."""
        path = self.folder / f"{worker}.log"
        with path.open("ab") as log:
            command = [sys.executable, "-m", "kainite", "run", "-p", str(self._properties(worker))]
            daemon = Daemon(worker, subprocess.Popen(command, stderr=log if stderr is None else stderr), path)
        self.daemons.append(daemon)
        return daemon

    def _properties(self, worker: str) -> Path:
        values = {
            "applicationName": self.table.name, "streamName": self.table.name, "regionName": "us-east-1",
            "executableName": f"{sys.executable} -S -E {RECORDER} {self.folder / 'calls'} {worker} {self.emits}",
            "kinesisEndpoint": self.endpoint, "dynamoDBEndpoint": self.endpoint, "workerId": worker,
            "initialPositionInStream": "TRIM_HORIZON", "idleTimeBetweenReadsInMillis": "100",
            "failoverTimeMillis": str(int(self.failover * 1000)), "childKillMillis": "500",
            "taskBackoffTimeMillis": "50", "metricsLevel": "NONE", **self.more,
        }  # fmt: skip
        path = self.folder / f"{worker}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def held(self) -> dict[str, int]:
        """Returns how many leases each worker owns, as the watcher saw it last; unowned leases count under ""."""
        held: dict[str, int] = defaultdict(int)
        for lease in self.leases:
            held[lease.owner or ""] += 1
        return dict(held)

    def balanced_among(self, *workers: str) -> bool:
        """Returns whether these workers own all leases, and no worker has more than one above another."""
        held = self.held()
        counts = [held.get(worker, 0) for worker in workers]
        return len(self.leases) == self.shards == sum(counts) and max(counts) - min(counts) <= 1

    def calls(self) -> list[Call]:
        """Returns all calls so far; whole lines only, for a child that is being killed may be writing."""
        found = []
        for path in (self.folder / "calls").iterdir():
            lines = path.read_bytes().split(b"\n")[:-1]
            found += [Call(**{**said, "numbers": tuple(said["numbers"])}) for said in map(json.loads, lines)]
        return found

    def missing(self, upto: int | None = None) -> set[int]:
        """Returns the numbers of records that were put and not delivered yet."""
        return set(self.put[:upto]) - {number for call in self.calls() for number in call.numbers}

    def caught_up(self) -> None:
        """Waits until every record that was put before the call is delivered."""
        upto = len(self.put)
        self.eventually(lambda: not self.missing(upto), "records that were put are not delivered")

    def pass_time(self, records: int) -> None:
        """Waits until so many more records have been put."""
        upto = len(self.put) + records
        self.eventually(lambda: len(self.put) >= upto, "the writer has stopped")

    def eventually(self, condition: Callable[[], object], otherwise: str, limit: float = LIMIT) -> None:
        """Waits until ``condition`` holds; fails after ``limit`` seconds, and shows who holds which leases."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f"{otherwise}; leases: {self.held()}; missing: {sorted(self.missing())[:9]}"
            time.sleep(LOOK_EVERY)

    def held_twice(self) -> dict[tuple[str, int, int], float]:
        """Returns for how many seconds two children held one shard, by shard and the two process ids.

        A child holds its shard from the beginning of its first call to the end of its last one, and only while it is
        not paused.
        """
        pauses: dict[str, list[Span]] = defaultdict(list)
        for daemon in self.daemons:
            pauses[daemon.worker] += daemon.pauses
        ran: dict[str, dict[int, list[Span]]] = defaultdict(dict)
        calls = sorted(self.calls(), key=lambda call: (call.shard, call.pid))
        for (shard, pid), group in itertools.groupby(calls, key=lambda call: (call.shard, call.pid)):
            of_child = list(group)
            span = min(call.began for call in of_child), max(call.ended for call in of_child)
            ran[shard][pid] = without(span, pauses[of_child[0].worker])
        return {
            (shard, one, other): overlap(spans[one], spans[other])
            for shard, spans in ran.items()
            for one, other in itertools.combinations(spans, 2)
        }

    def check(self) -> None:
        """Asserts what must hold in every run."""
        assert self.backwards == [], "checkpoints moved backwards"
        too_long = {who: seconds for who, seconds in self.held_twice().items() if seconds > self.failover}
        assert too_long == {}, "two children held a shard for longer than the failover time"


def without(span: Span, pauses: Iterable[Span]) -> list[Span]:
    """Returns what is left of a span when pauses are cut out."""
    left = [span]
    for begin, end in pauses:
        cut = [piece for a, b in left for piece in ((a, min(b, begin)), (max(a, end), b))]
        left = [(a, b) for a, b in cut if a < b]
    return left


def overlap(ones: Sequence[Span], others: Sequence[Span]) -> float:
    """Returns the seconds that lie in both."""
    return sum(max(0.0, min(b, d) - max(a, c)) for a, b in ones for c, d in others)


@contextmanager
def fleet(
    kinesis: Any, dynamodb: Any, endpoint: str, name: str, folder: Path, *, shards: int, failover: float, **more: str
) -> Iterator[Fleet]:
    """Opens a stream with a writer and a watcher; at the end runs :meth:`Fleet.check` and kills all daemons.

    Children emit where ``unitsOfWork`` is on.
    """
    kinesis.create_stream(StreamName=name, ShardCount=shards)
    (folder / "calls").mkdir()
    emits = "emit" if more.get("unitsOfWork") == "true" else ""
    world = Fleet(kinesis, LeaseTable(dynamodb, name), endpoint, folder, shards, failover, more=more, emits=emits)
    ended = threading.Event()
    threads = [threading.Thread(target=work, args=(world, ended)) for work in (_write, _watch)]
    for thread in threads:
        thread.start()
    try:
        yield world
        world.check()
    finally:
        for daemon in world.daemons:
            daemon.end()
        ended.set()
        for thread in threads:
            thread.join(LIMIT)


def _write(world: Fleet, ended: threading.Event) -> None:
    for number in itertools.count():
        key = str(2**128 // world.shards * (number % world.shards))
        world.kinesis.put_record(
            StreamName=world.table.name, Data=str(number).encode(), PartitionKey="k", ExplicitHashKey=key
        )
        world.put.append(number)
        if ended.wait(PUT_EVERY):
            return


def _watch(world: Fleet, ended: threading.Event) -> None:
    seen: dict[str, Checkpoint] = {}
    while not ended.wait(LOOK_EVERY):
        with suppress(LeaseTableError):  # before the first daemon has made the table
            world.leases = world.table.scan()
        for lease in world.leases:
            before = seen.get(lease.key, lease.checkpoint)
            if lease.checkpoint < before:
                world.backwards.append(f"{lease.key}: {before} → {lease.checkpoint}")
            seen[lease.key] = lease.checkpoint


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
