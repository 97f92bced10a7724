"""An outcomes partition that is followed: each reading goes on where the last one stopped."""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Outcome
from kainite.log.state.loading import low_water_mark
from kainite.log.state.outcomes import outcomes_of, outcomes_partition


class FollowedOutcomes:
    """The outcomes of one target that the log's owner has not copied into the log yet.

    Args:
        store, partition: the main log's.
        target: one of several targets; empty for the only one.
    """

    def __init__(self, store: LogStore, partition: str, target: str = "") -> None:
        self._store = store
        self._partition = outcomes_partition(partition, target)
        self._next: int | None = None
        self._kept: list[Batch] = []

    def __bool__(self) -> bool:
        """Tells whether there is any that the log was not seen to have."""
        return bool(self._kept)

    def read(self) -> Sequence[Batch]:
        """Returns the batches that have come since the last reading; those that were truncated meanwhile are missing.

        Raises:
            LogUnavailableError: the store does not answer.
            LogCorruptError: the partition does not read back as written.
        """
        if self._next is None:
            self._next = low_water_mark(self._store, self._partition)
        try:
            fresh = list(self._store.read_batches(self._partition, self._next, data=False, strong=True))
        except LogCorruptError:
            low = low_water_mark(self._store, self._partition)
            if low <= self._next:
                raise
            self._next = low  # truncated since: the owner has copied them into the log
            return ()
        if fresh:
            self._next = fresh[-1].last_id + 1
        self._kept += fresh
        return fresh

    def beyond(self, through: int) -> tuple[Outcome, ...]:
        """Returns the outcomes behind ``through``, up to which the log has them, and forgets the others."""
        self._kept = [batch for batch in self._kept if batch.last_id > through]
        return outcomes_of(self._kept, through + 1)
