"""Several readers whose snapshots have one place, as the driver of a load uses them.

A *snapshot* is the folder in which the readers listen (:mod:`kainite_spark.load.snapshot_reader`); the ledger of the
target has its name. Each reader has the whole snapshot, so it lives as long as one of them does.

A reader of which nothing is heard for :data:`SILENT_S` seconds is frozen: it is killed, which gives back what it holds
in both databases, and another one does its step. The last one that is left takes the snapshot with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import msgspec
import pymysql

from kainite.base.errors import SourceError
from kainite.base.redaction import redacted
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.snapshot_session import LOCK_WAIT_S
from kainite.capture.mysql.source_catalogue import as_source_error
from kainite.replicate.ends import LoadEnds
from kainite.replicate.own_process import first_line_of
from kainite.targets.mariadb.connection import connect
from kainite_spark.load.snapshot_reader import (
    BeginSnapshot,
    CheckReader,
    EndReader,
    HoldTables,
    ReaderAnswer,
    ReaderRequest,
    ReaderWork,
    ReadStep,
)
from kainite_spark.load.tasks import LoadStepResult, LoadTask, StepOutcome

BEGINNINGS: Final = 50
"""Times that all readers begin a snapshot, before commits are kept out of the source for the instant."""

MOST_READERS: Final = 8
"""Readers of a load, where the host has so many processors."""

BEGIN_S: Final = 10.0
"""Seconds for which a beginning waits for a reader: commits may be kept out of the source meanwhile."""

SILENT_S: Final = 60.0
"""Seconds without a sign of life after which a reader is taken for frozen."""

LOOK_S: Final = 0.5
CHECK_S: Final = 60.0
"""Seconds between two requests to a reader that has nothing to do."""

_XA: Final = "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_xa_prepare', 'Com_xa_commit')"
_LOCK: Final = (
    f"SET SESSION lock_wait_timeout = {LOCK_WAIT_S}, wait_timeout = {2 * BEGIN_S:.0f}", "FLUSH TABLES WITH READ LOCK",
)  # fmt: skip
_REFUSED: Final = frozenset({1044, 1045, 1227})


class ReaderLink:
    """A connection with a reader; raises OSError where the reader is gone.

    Args:
        path: where it listens.
        longest: seconds without a sign of life after which it is given up.
    """

    def __init__(self, path: Path, longest: float) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(longest)
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._lines = self._socket.makefile("rb")

    def send(self, request: ReaderRequest) -> None:
        """Sends a request."""
        self._socket.sendall(msgspec.json.encode(request) + b"\n")

    def receive(self) -> ReaderAnswer:
        """Waits for the answer, as long as there are signs of life."""
        while line := self._lines.readline():
            answer = msgspec.json.decode(line, type=ReaderAnswer)
            if not answer.works:
                return answer
        raise ConnectionResetError("the reader is gone")

    def ask(self, request: ReaderRequest) -> ReaderAnswer:
        """Sends a request and waits for the answer."""
        self.send(request)
        try:
            return self.receive()
        except TimeoutError:
            self._kill()
            raise TimeoutError(f"it said nothing for {self._socket.gettimeout():g} s, so it was ended") from None

    def _kill(self) -> None:
        """Kills the reader, which is frozen, and lets nobody come to it any more."""
        self._path.unlink(missing_ok=True)
        number = getattr(socket, "SO_PEERCRED", None)
        if number is not None:  # Linux alone; elsewhere it is left to itself
            pid, _, _ = struct.unpack("3i", self._socket.getsockopt(socket.SOL_SOCKET, number, struct.calcsize("3i")))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def begin_snapshot(ends: LoadEnds, readers: int, least: BinlogPlace) -> tuple[str, BinlogPlace]:
    """Starts readers whose snapshots have one place; returns the snapshot and the place.

    Args:
        ends: source and target.
        readers: how many.
        least: up to where the binlog has been read; no transaction before it is missing in the snapshots.

    Raises:
        SourceError: the source refused, is away, or lets no two sessions begin at one place.
    """
    folder = Path(tempfile.mkdtemp(prefix="kainite-"))
    try:
        for number in range(readers):
            _start(ReaderWork(ends.source_url, ends.target, ends.log_partition, str(folder / f"{number}.sock")))
        with _links(folder, BEGIN_S) as links:
            return str(folder), _same_place(ends.source_url, links, least)
    except BaseException as error:
        release_snapshot(str(folder))
        if isinstance(error, OSError):
            raise SourceError(f"a process that reads the source is gone: {error}") from None
        raise


def hold_tables(snapshot: str, tables: Sequence[str]) -> None:
    """Keeps tables from being altered while the snapshot lives.

    Raises:
        SourceError: one was altered since the snapshot was made, or somebody alters it for too long.
    """
    try:
        with _links(Path(snapshot), SILENT_S) as links:
            _all(links, HoldTables(tuple(tables)))
    except OSError as error:
        raise SourceError(f"a process that reads the source is gone: {error}") from None


def snapshot_lives(snapshot: str) -> bool:
    """Tells whether a reader of a snapshot lives."""
    with _links(Path(snapshot), SILENT_S) as links:
        return bool(links)


def release_snapshot(snapshot: str) -> None:
    """Ends a snapshot's readers; one that does a step ends behind it."""
    with suppress(OSError), _links(Path(snapshot), SILENT_S) as links:
        for link in links:
            with suppress(OSError):
                link.send(EndReader())
    shutil.rmtree(snapshot, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class SnapshotReaders:
    """Runs steps by a snapshot's readers; implements :class:`kainite_spark.load.rounds.StepRunner`.

    Attributes:
        parallelism: how many readers a load starts.
        silent: seconds without a sign of life after which a reader is taken for frozen.
    """

    parallelism: int
    silent: float = SILENT_S

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        left: SimpleQueue[int] = SimpleQueue()
        for step in steps:
            left.put(step)
        over = threading.Event()
        with _links(Path(task.snapshot or ""), self.silent) as links:
            if not links:
                return [LoadStepResult(steps[0], StepOutcome.SNAPSHOT_LOST, "no process that reads it is left")]
            with ThreadPoolExecutor(len(links)) as pool:
                futures = [pool.submit(_run_what_is_left, link, task.generation, left, over) for link in links]
                try:
                    check_at = time.monotonic() + CHECK_S
                    while wait(futures, LOOK_S).not_done:
                        look()
                        if time.monotonic() >= check_at:
                            check_at = time.monotonic() + CHECK_S
                            _check(link for link, future in zip(links, futures, strict=True) if future.done())
                finally:
                    over.set()
        return [result for future in futures for result in future.result()]


def _check(idle: Iterable[ReaderLink]) -> None:
    """Tells readers that have nothing to do that the driver lives."""
    for link in idle:
        with suppress(OSError):
            link.ask(CheckReader())


def _run_what_is_left(
    link: ReaderLink, generation: int, left: SimpleQueue[int], over: threading.Event
) -> list[LoadStepResult]:
    """Has a reader do steps until none is left, or the reader is gone."""
    done: list[LoadStepResult] = []
    while not over.is_set():
        try:
            step = left.get_nowait()
        except Empty:
            return done
        try:
            answer = link.ask(ReadStep(generation, step))
        except OSError as error:
            return [*done, LoadStepResult(step, StepOutcome.AGAIN, f"a process that reads the source: {error}")]
        done.append(LoadStepResult(step, StepOutcome(answer.outcome), answer.cause))
    return done


def _start(work: ReaderWork) -> None:
    """Starts a reader; returns when it listens."""
    line = first_line_of("kainite_spark.load.snapshot_reader", msgspec.json.encode(work))
    if not line:
        raise SourceError("a process that reads the source ended before it had a session")
    if cause := msgspec.json.decode(line, type=ReaderAnswer).cause:
        raise SourceError(cause)


@contextmanager
def _links(folder: Path, longest: float) -> Iterator[list[ReaderLink]]:
    """Connects to the readers of a folder that live."""
    with ExitStack() as stack:
        links: list[ReaderLink] = []
        for path in sorted(folder.glob("*.sock")):
            with suppress(OSError):
                links.append(stack.enter_context(closing(ReaderLink(path, longest))))
        yield links


def _same_place(url: str, links: Sequence[ReaderLink], least: BinlogPlace) -> BinlogPlace:
    """Lets all begin until their places are the same, and not before the least; returns the place.

    ``XA COMMIT`` stands in the binlog before InnoDB commits, so a snapshot may lack what its place has. Where anybody
    has prepared or committed an XA transaction since the server began, commits are kept out, which waits for those
    under way.
    """
    for _ in range(BEGINNINGS):
        places = _begun(links)
        if has_xa(url):
            break
        if len(places) == 1 and not any(place.is_before(least) for place in places):
            return places.pop()
    with _nobody_commits(url):
        places = _begun(links)
    if len(places) != 1:
        raise SourceError(f"snapshots of the source begin at different places: {', '.join(map(str, places))}")
    if (place := places.pop()).is_before(least):
        raise SourceError(f"a snapshot of the source begins at {place}, and its binlog was read up to {least}")
    return place


def has_xa(url: str) -> bool:
    """Tells whether an XA transaction was prepared since the server began, or one of before then committed."""
    with as_source_error(), closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(_XA)
        counts = [int(count) for _, count in cursor.fetchall()]
    return not counts or any(counts)


def _begun(links: Sequence[ReaderLink]) -> set[BinlogPlace]:
    return {BinlogPlace(answer.file, answer.position) for answer in _all(links, BeginSnapshot())}


def _all(links: Sequence[ReaderLink], request: ReaderRequest) -> list[ReaderAnswer]:
    """Asks all at once; raises SourceError where one says that it cannot."""
    for link in links:
        link.send(request)
    answers = [link.receive() for link in links]
    if causes := [answer.cause for answer in answers if answer.cause]:
        raise SourceError(causes[0])
    return answers


@contextmanager
def _nobody_commits(url: str) -> Iterator[None]:
    """Keeps commits out of the source meanwhile, which takes the right RELOAD.

    The server lets them in again when this process has been silent for longer than it would wait for the readers.

    Raises:
        SourceError: commits could not be kept out, or not for all the time.
    """
    with as_source_error():
        connection = connect(url)
    with closing(connection):
        try:
            for statement in _LOCK:
                connection.query(statement)
        except pymysql.Error as error:
            raise SourceError(_no_lock(error)) from None
        yield
        with as_source_error():
            connection.query("UNLOCK TABLES")


def _no_lock(error: pymysql.Error) -> str:
    """Returns why commits could not be kept out."""
    begun = "so much commits in the source, or by XA, or so slowly, that sessions find no common point"
    why = redacted(" ".join(str(error.args[-1] if error.args else error).split()))
    if error.args and error.args[0] in _REFUSED:
        return f"{begun}, and its user may not keep commits out for an instant ({why}): GRANT RELOAD ON *.* TO the user"
    return f"{begun}, and commits could not be kept out for an instant ({why}): start the load again"
