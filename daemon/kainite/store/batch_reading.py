"""Reads the batches of a log partition in order, whichever keys they stand in, while others append and truncate.

A place that a request has found empty, or with a fence, was the tail. What a later request of the same read finds
behind it may have come since, and a batch in that place before it. So a read begins again from the place, strongly. A
place that is missing then is a hole: the log is broken there, or was truncated.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator

from kainite.aws.dynamodb import Item
from kainite.base.errors import LogCorruptError, LogUnavailableError
from kainite.log.format.entry import Batch
from kainite.store.batch_items import BatchItems
from kainite.store.dynamodb_items import SLOT_FIELDS, SlotItems, slot_from
from kainite.store.forks import KnownForks
from kainite.store.log_table import LogTable
from kainite.store.stripe_reading import striped_slots

MOST_READS = 20
"""How often one read begins again behind a place that was empty at first: each time a writer was faster than it."""


class BatchReading:
    """Reads batches.

    Args:
        table: the log's table.
        forks: tell in which keys the slots stand, and learn of forks on the way.
        batches: reads the batch of a slot.
    """

    def __init__(self, table: LogTable, forks: KnownForks, batches: BatchItems) -> None:
        self._table = table
        self._forks = forks
        self._batches = batches

    def read(self, partition: str, first_id: int, last_id: int | None, *, data: bool, strong: bool) -> Iterator[Batch]:
        """Yields batches, as :meth:`kainite.log.contract.LogStore.read_batches`."""
        begin = first_id
        for attempt in range(MOST_READS):
            hole = yield from self._to_hole(partition, begin, last_id, data=data, strong=strong or attempt > 0)
            if hole is None:
                return
            if attempt and hole == begin:
                raise LogCorruptError(f"log partition {partition} has no entry {hole}")
            begin = hole
        raise LogUnavailableError(
            f"log partition {partition}: a read from entry {first_id} came to entry {begin} and was overtaken "
            f"{MOST_READS} times by batches that came to the log's end meanwhile; try again"
        )

    def _to_hole(
        self, partition: str, first_id: int, last_id: int | None, *, data: bool, strong: bool
    ) -> Generator[Batch, None, int | None]:
        """Yields batches as :meth:`read`, up to a missing one; returns the missing id, or None at the end."""
        expected = first_id
        for item in self._slots_from(partition, first_id, last_id, data=data, strong=strong):
            slot = slot_from(item)
            if slot.first_id > expected:
                return expected
            if slot.is_fence or slot.next_id <= first_id:
                continue
            yield self._batches.batch_from(partition, item, slot, data=data)
            expected = slot.next_id
        return None

    def _slots_from(
        self, partition: str, first_id: int, last_id: int | None, *, data: bool, strong: bool
    ) -> Iterator[Item]:
        """Yields slot items in order, from the slot that holds ``first_id``."""
        fields = f"{SLOT_FIELDS}, i, c, l" + (", d" if data else "")
        fork = self._forks.of(partition)
        if fork is None or first_id < fork.at:
            spine = SlotItems(self._table.query, partition, fields)
            before = spine.holding(None, first_id, strong=strong)
            after = spine.upwards(None, first_id + 1, last_id, strong=strong)
            for slot, item in itertools.chain(() if before is None else (before,), after):
                fork = self._forks.learn(partition, slot)
                if fork is not None:
                    break
                yield item
        if fork is not None:
            stripes = SlotItems(self._table.query, partition, fields)
            for _, item in striped_slots(stripes, fork, first_id, last_id, strong=strong):
                yield item
