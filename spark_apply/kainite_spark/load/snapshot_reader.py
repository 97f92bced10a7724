"""A process that keeps one session with MariaDB, whose snapshot has a place, and copies ranges of rows from it.

No session of MariaDB can take over another's snapshot, so the process that has the session copies; and the driver of a
load may be killed and go on, so that process is not the driver's. It listens on a Unix socket in a folder that only its
user may enter, and answers one request a line (:data:`ReaderRequest`), for one driver at a time. Which steps are done,
and under which generation, is in the target's ledger as for every load (:mod:`kainite_spark.load.tasks`).

=======================================  ===============================================================================
killed                                   then
=======================================  ===============================================================================
the driver                               the step under way ends; its answer goes nowhere. The next driver finds the
                                         socket, and shuts out what runs by a new generation. Nobody comes for
                                         :data:`LEFT_ALONE_S` seconds: the process ends
this process, in a step                  the target rolls back; the step is run again by another reader. The last one:
                                         the snapshot is gone, and the load begins anew
the session with the source              as this process: it ends
this process is frozen                   the driver hears nothing of it for
                                         :data:`kainite_spark.load.snapshot_readers.SILENT_S` seconds, kills it, and
                                         goes on as after a kill
=======================================  ===============================================================================

While it works on an answer it says each :data:`BEAT_S` seconds that it lives: a step may take hours. Only to
:class:`BeginSnapshot` it does not, since commits may be kept out of the source meanwhile. What it waits for in a
database has limits of its own.

It is told its work on standard input, since that has passwords, and answers with a line when it listens.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import pymysql

from kainite.base.errors import KainiteError
from kainite.base.redaction import redacted
from kainite.base.whole_write import write_whole
from kainite.capture.mysql.snapshot_session import SnapshotGoneError, SnapshotSession
from kainite.replicate.ledger import CopyStep
from kainite_spark.load.any_step import run_any_step
from kainite_spark.load.tasks import LoadStepResult, LoadTask, StepOutcome

LEFT_ALONE_S: Final = 600.0
"""Seconds for which a load whose driver was killed may be gone on with."""

BEAT_S: Final = 1.0
"""Seconds between two signs of life while a request is being answered."""


class ReaderWork(msgspec.Struct, frozen=True):
    """What a reader is told.

    Attributes:
        source_url, target: the databases' URLs; implements :class:`kainite.replicate.ends.LoadEnds`.
        log_partition: the log's name in the target.
        path: where it listens.
    """

    source_url: str
    target: str
    log_partition: str
    path: str


class BeginSnapshot(msgspec.Struct, frozen=True, tag="begin"):
    """Begins a snapshot, in place of an earlier one."""


class HoldTables(msgspec.Struct, frozen=True, tag="hold"):
    """Keeps tables from being altered."""

    tables: tuple[str, ...]


class ReadStep(msgspec.Struct, frozen=True, tag="step"):
    """Does a step of the load of a generation."""

    generation: int
    step: int


class CheckReader(msgspec.Struct, frozen=True, tag="check"):
    """Looks that the session lives."""


class EndReader(msgspec.Struct, frozen=True, tag="end"):
    """Ends the process."""


ReaderRequest: TypeAlias = BeginSnapshot | HoldTables | ReadStep | CheckReader | EndReader


class ReaderAnswer(msgspec.Struct, frozen=True):
    """What a reader answers.

    Attributes:
        file, position: where the snapshot stands, of :class:`BeginSnapshot`.
        outcome: of :class:`ReadStep`.
        cause: why something was not done; empty where it was.
        works: whether this is no answer yet, but a sign of life.
    """

    file: str = ""
    position: int = 0
    outcome: str = ""
    cause: str = ""
    works: bool = False


_REQUESTS: Final[msgspec.json.Decoder[ReaderRequest]] = msgspec.json.Decoder(ReaderRequest)


@dataclass(slots=True)
class SnapshotReader:
    """A session and what it is asked.

    Attributes:
        work: what it is told.
        session: with the source.
        over: whether the process is to end.
    """

    work: ReaderWork
    session: SnapshotSession
    over: bool = False

    def answer(self, request: ReaderRequest) -> ReaderAnswer:
        """Does what is asked; what is wrong is in the answer."""
        try:
            return self._answered(request)
        except KainiteError as error:
            return ReaderAnswer(cause=str(error))
        except SnapshotGoneError as error:
            self.over = True
            return ReaderAnswer(outcome=StepOutcome.AGAIN.value, cause=f"the source's session is gone: {error}")
        except pymysql.Error as error:
            cause = redacted(" ".join(str(error.args[-1] if error.args else error).split()))
            return ReaderAnswer(outcome=StepOutcome.REFUSED.value, cause=f"the source: {cause}")

    def _answered(self, request: ReaderRequest) -> ReaderAnswer:
        match request:
            case BeginSnapshot():
                place = self.session.begin()
                return ReaderAnswer(place.file, place.position)
            case HoldTables(tables):
                self.session.hold(tables)
            case ReadStep(generation, step):
                done = self._step(generation, step)
                return ReaderAnswer(outcome=done.outcome.value, cause=done.cause)
            case CheckReader():
                self.session.check()
            case EndReader():
                self.over = True
        return ReaderAnswer()

    def _step(self, generation: int, step: int) -> LoadStepResult:
        return run_any_step(LoadTask(self.work, generation, None), step, self._rows)

    @contextmanager
    def _rows(self, work: CopyStep) -> Iterator[Iterator[bytes]]:
        """Implements :class:`kainite_spark.load.tasks.RowsOf`."""
        yield (block for query in work.queries for block in self.session.blocks(query, work.spellings))


def serve(reader: SnapshotReader, listener: socket.socket) -> None:
    """Answers drivers, one after the other, until the reader is over, or nobody comes."""
    listener.settimeout(LEFT_ALONE_S)
    while not reader.over:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            return
        with connection:
            connection.settimeout(LEFT_ALONE_S)
            try:
                _serve_one(reader, connection)
            except OSError:  # the driver is gone, or is silent for too long
                continue


def _serve_one(reader: SnapshotReader, connection: socket.socket) -> None:
    with connection.makefile("rb") as lines:
        for line in iter(partial(lines.readline), b""):
            request = _REQUESTS.decode(line)
            with nullcontext() if isinstance(request, BeginSnapshot) else _beating(connection):
                answer = reader.answer(request)
            connection.sendall(msgspec.json.encode(answer) + b"\n")
            if reader.over:
                return


@contextmanager
def _beating(connection: socket.socket) -> Iterator[None]:
    """Tells the driver meanwhile, by a thread, that this process lives."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_S):
            with suppress(OSError):  # the driver is gone: whoever answers it sees that
                connection.sendall(msgspec.json.encode(ReaderAnswer(works=True)) + b"\n")

    thread = threading.Thread(target=beat, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run_reader(work: ReaderWork, answer: int) -> None:
    """Opens the session and listens, says so on a file descriptor, closes it, and serves."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            session = SnapshotSession(work.source_url)
        except KainiteError as error:
            _say(answer, ReaderAnswer(cause=str(error)))
            return
        with closing(session):
            try:
                listener.bind(work.path)
                listener.listen()
            except OSError as error:
                _say(answer, ReaderAnswer(cause=f"{work.path}: {error}"))
                return
            _say(answer, ReaderAnswer())
            try:
                serve(SnapshotReader(work, session), listener)
            finally:
                Path(work.path).unlink(missing_ok=True)


def _say(descriptor: int, answer: ReaderAnswer) -> None:
    write_whole(descriptor, msgspec.json.encode(answer) + b"\n")
    os.close(descriptor)


def main() -> None:
    """Reads for the load that standard input describes; in a child process, so that the driver has none to wait for."""
    work = msgspec.json.decode(sys.stdin.buffer.read(), type=ReaderWork)
    if os.fork() == 0:
        run_reader(work, sys.stdout.fileno())


if __name__ == "__main__":
    main()
