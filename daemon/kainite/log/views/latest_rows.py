"""The last rows of the log's table, for which only the log's end is read.

HEAD's summary (:mod:`kainite.log.state.summary`) says from where on the entries of all units stand that still collect.
The read begins there, or further back where that gives too few rows, or where a row's deltas begin earlier. It is no
further back than the low-water mark.

The rows are those of :func:`~kainite.log.views.unit_table.read_present_rows` but for one column: the unit with which a
row conflicted is told where that unit stands in what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from kainite.log.contract import LogHead, LogStore
from kainite.log.format.entry import Batch
from kainite.log.state.loading import read_from_low
from kainite.log.state.outcomes import outcomes_of, stored_batches
from kainite.log.state.summary import DurableMark, from_text
from kainite.log.views.unit_table import LogRow, UnitTable, read_present_rows

LEAST: Final = 1_000
"""How many entries are read at least: about one query of the table."""

GROWTH: Final = 4
"""How many times as many entries are read where there were too few rows."""


def read_latest_rows(store: LogStore, partition: str, limit: int, head: LogHead | None = None) -> list[LogRow]:
    """Returns the last rows, with the outcomes that the owner has not copied into the log yet.

    Args:
        store, partition: the log.
        limit: how many rows.
        head: the partition's head, where it has just been read.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    outcomes = stored_batches(store, partition)  # before the log, as read_present_rows says
    head = head or store.read_head(partition)
    summary = from_text(head.summary) if head is not None else None
    if summary is None:
        return read_present_rows(store, partition, head)[-limit:]
    return read_from_low(store, partition, partial(_read, store, partition, outcomes, summary.mark, limit), head)


def _read(
    store: LogStore, partition: str, outcomes: Sequence[Batch], mark: DurableMark, limit: int, low: int
) -> list[LogRow]:
    begin = max(low, min(mark.collecting_from, mark.next_id - max(LEAST, 2 * limit)))
    while True:
        table = UnitTable()
        following = begin
        for batch in store.read_batches(partition, begin, strong=True):
            table.take(batch, begin)
            following = batch.last_id + 1
        rows = list(table.rows(limit))
        earlier = table.first_entry_of(rows)
        if begin <= low or (len(rows) == limit and earlier >= begin):
            break
        grown = following - GROWTH * max(following - begin, LEAST)
        begin = max(low, int(min(earlier, begin - 1) if len(rows) == limit else min(earlier, grown)))
    if outcomes:
        through = mark.through if table.through is None else table.through
        table.settle(outcomes_of(outcomes, through + 1))
        rows = list(table.rows(limit))
    return rows
