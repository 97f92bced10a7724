"""Drivers of loads and cut-overs as processes, which are killed, or kill and freeze others, at a chosen round trip.

A *round trip* is whatever a process asks of a database: a statement, a commit, a row of a copy. So a process that is
killed before each of its round trips in turn is killed at each step that a database can tell from others.

One process without threads (``python -m support.load_processes``) has everything imported, and forks for each driver;
a driver forks for each step, in the place of Spark's workers. SIGKILL and SIGSTOP are real, and so is the process that
keeps the source's snapshot.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import psycopg

from kainite.base.errors import KainiteError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate import keeper
from kainite.replicate.applied_point import LogStanding
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.new_table import make_table, publish, source_table
from kainite.settings import ApplySettings
from kainite_demo.postgres_server import programs
from kainite_spark.load.cutover import CutOver
from kainite_spark.load.job import LoadJob
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.load.tasks import LoadStepResult, LoadTask, run_step
from kainite_spark.targets.opening import open_target
from support.live_replica import session_with
from support.replicas import tables_of
from support.waiting import eventually

FOR_EVER: Final = sys.maxsize
_ROUND_TRIP: Final = psycopg.Connection.wait


class Victim(StrEnum):
    """Who is killed, or frozen, at a round trip."""

    DRIVER = "driver"
    KEEPER = "keeper"  # at a round trip of the driver, from the keeper's start on; at 0 before the point
    TASK = "task"  # at a round trip of its own
    FROZEN_TASK = "frozen task"


class Drive(msgspec.Struct, frozen=True):
    """What a driver does.

    Attributes:
        what: ``load``, ``reload``, ``add`` or ``cutover``.
        source, slot, publication, target, log_partition: the databases, as in ``ReplicaEnds``.
        table: of ``reload`` and ``add``.
        anew: begins anew in any case.
        victim, place: who is killed before which of its round trips, from 0.
    """

    what: str
    source: str
    slot: str
    publication: str
    target: str
    log_partition: str
    table: str = ""
    anew: bool = False
    victim: Victim = Victim.DRIVER
    place: int = FOR_EVER

    @property
    def ends(self) -> ReplicaEnds:
        return ReplicaEnds(SourceSlot(self.source, self.slot, self.publication), self.target, self.log_partition)


class Driven(msgspec.Struct, frozen=True):
    """What became of a driver.

    Attributes:
        killed: whether it was killed; nothing else is known then.
        error: Kainite's error that it ended with; empty for none.
        trips: its round trips up to its end, or up to the kill of another process.
        struck: whether the victim was met.
        frozen: tasks that are frozen.
    """

    killed: bool = False
    error: str = ""
    trips: int = 0
    struck: bool = False
    frozen: tuple[int, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """A cut-over's question how far the log is with a commit LSN."""

    lsn: int


class Drivers:
    """The process that forks drivers, as a test has it.

    Args:
        ends: the databases.
        standing: answers a cut-over how far the log is.
    """

    def __init__(self, ends: ReplicaEnds, standing: Callable[[int], LogStanding]) -> None:
        self._ends = ends
        self._standing = standing
        path = f"{programs()}:{os.environ['PATH']}"  # pg_dump makes the tables that are added
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.load_processes"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True,
        )  # fmt: skip

    def drive(self, what: str, table: str = "", **more: Any) -> Driven:
        """Has a driver do its work; returns what became of it."""
        source = self._ends.source
        work = Drive(what, source.url, source.slot, source.publication, self._ends.target, self._ends.log_partition,
                     table, **more)  # fmt: skip
        self._say(work)
        while True:
            line = self._hear()
            if isinstance(line, Driven):
                return line
            self._say(self._standing(line.lsn))

    def close(self) -> None:
        """Kills the process, and all that it has left behind."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _say(self, what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(what) + b"\n")
        self._process.stdin.flush()

    def _hear(self) -> Driven | Question:
        assert self._process.stdout is not None
        kind, _, line = self._process.stdout.readline().partition(b" ")
        return msgspec.json.decode(line, type=Question if kind == b"?" else Driven)


@contextmanager
def drivers(ends: ReplicaEnds, standing: Callable[[int], LogStanding]) -> Iterator[Drivers]:
    """Gives the process that forks drivers."""
    made = Drivers(ends, standing)
    try:
        yield made
    finally:
        made.close()


def wake_up(frozen: Sequence[int]) -> None:
    """Lets frozen tasks go on, and waits until they have ended."""
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    for pid in frozen:
        eventually(partial(_has_ended, pid))


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# What follows runs in the process that forks, and in those that it forks.


class _Strikes:
    """Counts this process's round trips, and strikes before one of them.

    Args:
        place: the round trip, from 0.
        strike: strikes; tells whether it has met somebody.
        counts: tells whether a round trip counts.
    """

    def __init__(self, place: int, strike: Callable[[], bool], counts: Callable[[], bool] = lambda: True) -> None:
        self.trips = 0
        self.struck = False

        def wait(connection: psycopg.Connection, *values: Any, **named: Any) -> Any:
            if self.trips >= place and not self.struck and counts():
                self.struck = strike()
            self.trips += counts()
            return _ROUND_TRIP(connection, *values, **named)

        setattr(psycopg.Connection, "wait", wait)  # noqa: B010


class _Keepers:
    """Knows the process groups of the keepers that this process starts.

    Args:
        doomed: whether the first one is killed as it starts.
    """

    def __init__(self, *, doomed: bool) -> None:
        self._groups: list[int] = []
        self.struck = False
        kept = subprocess.Popen

        def started(command: Sequence[str], *values: Any, **named: Any) -> Any:
            process = kept(command, *values, **named)
            if keeper.__name__ in command:
                self._groups.append(process.pid)
                if doomed and len(self._groups) == 1:
                    self.kill()
            return process

        setattr(subprocess, "Popen", started)  # noqa: B010

    def there_are(self) -> bool:
        return bool(self._groups)

    def kill(self) -> bool:
        """Kills the latest one; tells whether it was still there."""
        try:
            os.killpg(self._groups[-1], signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.struck = True
        return True


class _ForkedSteps:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` with a process for each step."""

    parallelism = 2

    def __init__(self, work: Drive) -> None:
        self._work = work
        self.frozen: list[int] = []
        self.struck = False

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        look()
        results: list[LoadStepResult] = []
        for first in range(0, len(steps), self.parallelism):
            begun = [self._begin(task, step) for step in steps[first : first + self.parallelism]]
            results += [result for one in begun for result in self._end(*one)]
        return results

    def _begin(self, task: LoadTask, step: int) -> tuple[int, int]:
        readable, writable = os.pipe()
        dooms = self._work.victim in (Victim.TASK, Victim.FROZEN_TASK) and not self.struck
        if (pid := os.fork()) == 0:
            setattr(psycopg.Connection, "wait", _ROUND_TRIP)  # noqa: B010 - it counted the driver's
            if dooms:
                _Strikes(self._work.place, self._strike)
            os.write(writable, msgspec.json.encode(run_step(task, step)))
            os._exit(0)
        os.close(writable)
        return pid, readable

    def _strike(self) -> bool:
        os.kill(os.getpid(), signal.SIGKILL if self._work.victim is Victim.TASK else signal.SIGSTOP)
        return True

    def _end(self, pid: int, readable: int) -> list[LoadStepResult]:
        """Returns a task's result; nothing of one that was killed or frozen, as Spark has it."""
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if os.WIFSTOPPED(status):
            self.frozen.append(pid)
        if os.WIFSTOPPED(status) or os.WIFSIGNALED(status):
            self.struck = True
            os.close(readable)
            return []
        with open(readable, "rb") as said:
            return [msgspec.json.decode(said.read(), type=LoadStepResult)]


def _driven(work: Drive) -> Driven:
    """Does a driver's work in this process."""
    steps = _ForkedSteps(work)
    keepers = _Keepers(doomed=work.victim is Victim.KEEPER and work.place == 0)
    match work.victim:
        case Victim.DRIVER:
            strikes = _Strikes(work.place, _kill_me)
        case Victim.KEEPER:
            strikes = _Strikes(work.place or FOR_EVER, keepers.kill, keepers.there_are)
        case _:
            strikes = _Strikes(FOR_EVER, _kill_me)
    error = ""
    try:
        _WORKS[work.what](work, steps)
    except KainiteError as failure:
        error = f"{type(failure).__name__}: {failure}"
    return Driven(False, error, strikes.trips, strikes.struck or steps.struck or keepers.struck, tuple(steps.frozen))


def _kill_me() -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return True


def _load(work: Drive, steps: _ForkedSteps) -> None:
    catalogue = tables_of(work.target)
    with closing(open_target(work.target, catalogue, apply=ApplySettings())) as target:
        target.prepare(catalogue)
    with psycopg.connect(work.target, autocommit=True) as connection:
        LoadJob(work.ends, connection, steps, partial(tables_of, work.target)).run(anew=work.anew)


def _load_table(work: Drive, steps: _ForkedSteps) -> None:
    table = source_table(work.ends, ("public", work.table))
    adds = work.what == "add"
    with psycopg.connect(work.target, autocommit=True) as connection:
        TableLoadJob(
            work.ends, table.place, connection, steps, partial(session_with, work.target),
            make=lambda target: make_table(target, work.ends, table) if adds else None,
            made=lambda: publish(work.ends, table) if adds else None,
        ).run(anew=work.anew)  # fmt: skip


def _cut_over(work: Drive, _: _ForkedSteps) -> None:
    CutOver(work.ends, _ask, threading.Event(), lambda *_: None, 60.0).run()


def _ask(lsn: int) -> LogStanding:
    """Asks the test how far the log is."""
    _answer(b"?", Question(lsn))
    return msgspec.json.decode(_read_line(), type=LogStanding)


_WORKS: Final[dict[str, Callable[[Drive, _ForkedSteps], None]]] = {
    "load": _load,
    "reload": _load_table,
    "add": _load_table,
    "cutover": _cut_over,
}


def _read_line() -> bytes:
    """Reads a line, and nothing behind it, which is for the process that forks."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def _answer(kind: bytes, what: Any) -> None:
    os.write(1, kind + b" " + msgspec.json.encode(what) + b"\n")


def _forked(work: Drive) -> None:
    """Lets a process of its own do a driver's work, and answers what became of it."""
    if (pid := os.fork()) == 0:
        _answer(b"=", _driven(work))
        os._exit(0)
    if os.WIFSIGNALED(os.waitpid(pid, 0)[1]):
        _answer(b"=", Driven(killed=True, struck=True))


def main() -> None:
    """Forks a driver for each line of standard input."""
    while line := _read_line():
        _forked(msgspec.json.decode(line, type=Drive))


if __name__ == "__main__":
    main()
