"""Several readers whose snapshots have one place, as the driver of a load uses them.

A *snapshot* is the folder in which the readers listen (:mod:`kainite_spark.load.snapshot_reader`); the ledger of the
target has its name. Each reader has the whole snapshot, so it lives as long as one of them does.

A reader of which nothing is heard for :data:`SILENT_S` seconds is frozen: it is killed, which gives back what it holds
in both databases, and another one does its step. The last one that is left takes the snapshot with it.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import msgspec

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.same_place import BEGIN_S, same_place
from kainite.replicate.ends import LoadEnds
from kainite.replicate.own_process import OwnProcess
from kainite_spark.load.reader_link import ReaderLink, reader_links
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

MOST_READERS: Final = 8
"""Readers of a load, where the host has so many processors."""

SILENT_S: Final = 60.0
"""Seconds without a sign of life after which a reader is taken for frozen."""

LOOK_S: Final = 0.5
CHECK_S: Final = 60.0
"""Seconds between two requests to a reader that has nothing to do."""


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
        with reader_links(folder, BEGIN_S) as links:
            return str(folder), same_place(ends.source_url, partial(_begun, links), least)
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
        with reader_links(Path(snapshot), SILENT_S) as links:
            _all(links, HoldTables(tuple(tables)))
    except OSError as error:
        raise SourceError(f"a process that reads the source is gone: {error}") from None


def snapshot_lives(snapshot: str) -> bool:
    """Tells whether a reader of a snapshot lives."""
    with reader_links(Path(snapshot), SILENT_S) as links:
        return bool(links)


def release_snapshot(snapshot: str) -> None:
    """Ends a snapshot's readers; one that does a step ends behind it."""
    with suppress(OSError), reader_links(Path(snapshot), SILENT_S) as links:
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
        with reader_links(Path(task.snapshot or ""), self.silent) as links:
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
    line = OwnProcess("kainite_spark.load.snapshot_reader").first_line(msgspec.json.encode(work))
    if not line:
        raise SourceError("a process that reads the source ended before it had a session")
    if cause := msgspec.json.decode(line, type=ReaderAnswer).cause:
        raise SourceError(cause)


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
