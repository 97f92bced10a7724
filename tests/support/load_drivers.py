"""The process that forks drivers of loads and cut-overs, for :mod:`support.load_processes`.

It has no threads, and everything imported. What a driver and its tasks do is Kainite's own; round trips are counted
below psycopg, by its one way to wait for an answer, and below PyMySQL, by its one way to send a command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

import msgspec
import psycopg
import pymysql

from kainite.base.errors import KainiteError
from kainite.replicate import keeper
from kainite.replicate.applied_point import LogStanding
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import is_mariadb
from kainite.replicate.load_target import load_session
from kainite.replicate.new_table import making, publish, source_table
from kainite.settings import ApplySettings
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.any_step import run_any_step
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.copy_source import PostgresCopySource
from kainite_spark.load.cutover import CutOver
from kainite_spark.load.cutover_sequences import sequences_between
from kainite_spark.load.cutover_source import BinlogCutOverSource, PostgresCutOverSource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.snapshot_readers import SnapshotReaders
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.load.tasks import LoadStepResult, LoadTask
from kainite_spark.targets.opening import open_target
from support.live_mariadb import mariadb_session_with
from support.live_replica import session_with
from support.load_processes import FOR_EVER, Drive, Driven, Question, Victim
from support.replicas import tables_of

_ROUND_TRIP: Final = psycopg.Connection.wait
_COMMAND: Final[Any] = getattr(pymysql.connections.Connection, "_execute_command")  # noqa: B009


class _Strikes:
    """Counts this process's round trips, and strikes before one of them.

    Args:
        place: the round trip, from 0.
        strike: strikes; tells whether it has met somebody.
        counts: tells whether a round trip counts.
        mariadb: whether those to MariaDB count, too.
    """

    def __init__(
        self,
        place: int,
        strike: Callable[[], bool],
        counts: Callable[[], bool] = lambda: True,
        *,
        mariadb: bool = False,
    ) -> None:
        self.trips = 0
        self.struck = False

        def trip() -> None:
            if self.trips >= place and not self.struck and counts():
                self.struck = strike()
            self.trips += counts()

        def wait(connection: psycopg.Connection, *values: Any, **named: Any) -> Any:
            trip()
            return _ROUND_TRIP(connection, *values, **named)

        def command(connection: Any, *values: Any) -> Any:
            trip()
            return _COMMAND(connection, *values)

        _round_trips(wait, command if mariadb else _COMMAND)


def _round_trips(wait: Any, command: Any) -> None:
    """Sets by what psycopg waits for an answer, and by what PyMySQL sends a command."""
    setattr(psycopg.Connection, "wait", wait)  # noqa: B010
    setattr(pymysql.connections.Connection, "_execute_command", command)  # noqa: B010


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
            _round_trips(_ROUND_TRIP, _COMMAND)  # they counted the driver's
            if dooms:
                _Strikes(self._work.place, self._strike, mariadb=is_mariadb(self._work.target))
            os.write(writable, msgspec.json.encode(run_any_step(task, step)))
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
            strikes = _Strikes(work.place, _kill_me, mariadb=is_mariadb(work.target))
        case Victim.KEEPER:
            strikes = _Strikes(work.place or FOR_EVER, keepers.kill, keepers.there_are, mariadb=is_mariadb(work.target))
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
    catalogue = _catalogue(work.target)
    with closing(open_target(work.target, catalogue, apply=ApplySettings())) as target:
        target.prepare(work.ends.log_partition, catalogue)
    with load_session(work.target, "kainite load driver") as connection:
        LoadJob(PostgresCopySource(work.ends), connection, steps, partial(_catalogue, work.target)).run(anew=work.anew)


def _load_table_of_binlog(work: Drive) -> None:
    with load_session(work.target, "kainite load driver") as connection:
        TableLoadJob(
            BinlogCopySource(work.binlog_ends), ("public", work.table), connection, SnapshotReaders(2),
            partial(_session, work.target), partial(_catalogue, work.target),
        ).run(anew=work.anew)  # fmt: skip


def _load_table(work: Drive, steps: _ForkedSteps) -> None:
    if work.offsets:
        _load_table_of_binlog(work)
        return
    table = source_table(work.ends, ("public", work.table))
    adds = work.what == "add"
    with load_session(work.target, "kainite load driver") as connection:
        TableLoadJob(
            PostgresCopySource(work.ends), table.place, connection, steps, partial(_session, work.target),
            partial(_catalogue, work.target),
            make=making(work.ends, table, partial(_catalogue, work.target)) if adds else lambda _: None,
            made=lambda: publish(work.ends, table) if adds else None,
        ).run(anew=work.anew)  # fmt: skip


def _catalogue(url: str) -> Catalogue:
    return reflect(url) if is_mariadb(url) else tables_of(url)


def _session(url: str) -> Any:
    return mariadb_session_with(url) if is_mariadb(url) else session_with(url)


def _cut_over(work: Drive, _: _ForkedSteps) -> None:
    ends = work.binlog_ends if work.offsets else work.ends
    sequences = sequences_between(ends, reflect(work.target))
    source = (
        BinlogCutOverSource(ends, sequences) if isinstance(ends, BinlogEnds) else PostgresCutOverSource(ends, sequences)
    )
    CutOver(source, _ask, threading.Event(), lambda *_: None, 60.0).run()


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
