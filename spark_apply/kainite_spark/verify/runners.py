"""Runs the items of a comparison with threads, where there is too little to compare for Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Final, Protocol, TypeAlias

from kainite_spark.verify.tasks import BucketsItem, BucketsRows, RangeItem, RangeSums, VerifyTask, run_items

VerifyItem: TypeAlias = RangeItem | BucketsItem
VerifyResult: TypeAlias = RangeSums | BucketsRows

THREADS: Final = 2
"""Items that run at once without Spark: the servers do the work."""

LOOK_S: Final = 0.5


class ItemRunner(Protocol):
    """Runs items."""

    @property
    def parallelism(self) -> int:
        """Returns how many items run at once."""

    def run(self, task: VerifyTask, items: Sequence[VerifyItem], look: Callable[[], None]) -> list[VerifyResult]:
        """Returns the results of items.

        Args:
            task: what they have in common.
            items: the items; one at least.
            look: called every second or so meanwhile; its errors end the waiting.

        Raises:
            SourceError, TargetUnavailableError: a side did not answer.
            SparkUnavailableError: the Spark job failed.
        """


class ThreadItems:
    """Implements :class:`ItemRunner` with threads."""

    parallelism = THREADS

    def run(self, task: VerifyTask, items: Sequence[VerifyItem], look: Callable[[], None]) -> list[VerifyResult]:
        return run_in_threads([partial(run_items, task)] * THREADS, items, look)


def run_in_threads(
    workers: Sequence[Callable[[Iterator[VerifyItem]], Iterator[VerifyResult]]],
    items: Sequence[VerifyItem],
    look: Callable[[], None],
) -> list[VerifyResult]:
    """Returns the results of items, each of which one of the workers does, in a thread of its own.

    Args:
        workers: each yields the results of the items that it is given.
        items: the items.
        look: called every second or so meanwhile; its errors end the work behind the items that are being done.
    """
    over = threading.Event()
    with ThreadPoolExecutor(len(workers)) as pool:
        futures = [
            pool.submit(_until, over, worker, items[place :: len(workers)]) for place, worker in enumerate(workers)
        ]
        try:
            while wait(futures, LOOK_S).not_done:
                look()
        finally:
            over.set()
    return [result for future in futures for result in future.result()]


def _until(
    over: threading.Event,
    worker: Callable[[Iterator[VerifyItem]], Iterator[VerifyResult]],
    items: Sequence[VerifyItem],
) -> list[VerifyResult]:
    def left() -> Iterator[VerifyItem]:
        for item in items:
            if over.is_set():
                return
            yield item

    return list(worker(left()))
