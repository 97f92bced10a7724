"""Drivers of loads and cut-overs as processes, which are killed, or kill and freeze others, at a chosen round trip.

A *round trip* is whatever a process asks of a database: a statement, a commit, a row of a copy. So a process that is
killed before each of its round trips in turn is killed at each step that a database can tell from others.

:mod:`support.load_drivers` runs them: one process without threads, which forks for each driver; a driver forks for each
step, in the place of Spark's workers. SIGKILL and SIGSTOP are real, and so is the process that keeps the source's
snapshot.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from select import select
from typing import Any, Final

import msgspec
import psutil

from kainite.capture.mysql.extractor import BinlogReading
from kainite.capture.postgresql.replication import SourceSlot
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.replicate.applied_point import LogStanding
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import ReplicaEnds
from kainite.settings import ExtractOffsets
from kainite_demo.postgres_server import programs
from support.waiting import eventually

FOR_EVER: Final = sys.maxsize
_CHECK_S = 0.5


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
        offsets: the file of the extraction, where the source is MariaDB, which has no slot and no publication.
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
    offsets: str = ""
    victim: Victim = Victim.DRIVER
    place: int = FOR_EVER

    @property
    def ends(self) -> ReplicaEnds:
        return ReplicaEnds(SourceSlot(self.source, self.slot, self.publication), self.target, self.log_partition)

    @property
    def binlog_ends(self) -> BinlogEnds:
        file = OffsetFile(Path(self.offsets), "stream", ExtractOffsets.KAINITE)
        return BinlogEnds(BinlogReading(self.source), self.target, self.log_partition, file)


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
        check: raises what ended the threads that a driver waits for; asked while it works.
    """

    def __init__(
        self, ends: ReplicaEnds | BinlogEnds, standing: Callable[[int], LogStanding], check: Callable[[], object]
    ) -> None:
        self._ends = ends
        self._standing = standing
        self._check = check
        path = f"{programs()}:{os.environ['PATH']}"  # pg_dump makes the tables that are added
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.load_drivers"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True, bufsize=0,
        )  # fmt: skip

    def drive(self, what: str, table: str = "", **more: Any) -> Driven:
        """Has a driver do its work; returns what became of it."""
        ends = self._ends
        if isinstance(ends, BinlogEnds):
            named, more = ("", ""), {"offsets": str(ends.offsets.path), **more}
        else:
            named = ends.source.slot, ends.source.publication
        self._say(Drive(what, ends.source.url, *named, ends.target, ends.log_partition, table, **more))
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

    def _hear(self) -> Driven | Question:
        assert self._process.stdout is not None
        while not select([self._process.stdout], [], [], _CHECK_S)[0]:
            self._check()
        kind, _, line = self._process.stdout.readline().partition(b" ")
        if kind == b"?":
            return msgspec.json.decode(line, type=Question)
        return msgspec.json.decode(line, type=Driven)


@contextmanager
def drivers(
    ends: ReplicaEnds | BinlogEnds, standing: Callable[[int], LogStanding], check: Callable[[], object]
) -> Iterator[Drivers]:
    """Gives the process that forks drivers."""
    made = Drivers(ends, standing, check)
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
