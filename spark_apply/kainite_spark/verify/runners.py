"""Runs the items of a comparison with threads, where there is too little to compare for Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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
        over = threading.Event()
        with ThreadPoolExecutor(THREADS) as pool:
            futures = [pool.submit(_until, over, task, items[place::THREADS]) for place in range(THREADS)]
            try:
                while wait(futures, LOOK_S).not_done:
                    look()
            finally:
                over.set()
        return [result for future in futures for result in future.result()]


def _until(over: threading.Event, task: VerifyTask, items: Sequence[VerifyItem]) -> list[VerifyResult]:
    def left() -> Iterator[VerifyItem]:
        for item in items:
            if over.is_set():
                return
            yield item

    return list(run_items(task, left()))
