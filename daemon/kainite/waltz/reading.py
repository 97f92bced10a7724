"""Reads durable transactions of an application's log partition: recent ones from memory, others from the store."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry, ReqId, TransactionMeta

RECENT_BYTES: Final = 32 << 20
"""About how many bytes of recent transactions stay in memory, for each partition."""

TRANSACTION_BYTES: Final = 400
"""About how many bytes a transaction takes in memory in addition to its data."""

PORTION: Final = 500
"""The most transactions that are read at once."""


class FedTransaction(NamedTuple):
    """A transaction as the feed has it."""

    id: int
    req_id: ReqId
    header: int


def header_of(entry: Entry) -> int:
    """Returns a transaction's header.

    Raises:
        LogCorruptError: the entry is no transaction.
    """
    if not isinstance(entry.meta, TransactionMeta):
        raise LogCorruptError(f"a log partition of applications has an entry of kind {entry.kind.name}")
    return entry.meta.header


class Transactions:
    """The durable transactions of one log partition.

    Args:
        store: the partition's store.
        partition: the partition's name.
        next_id: the first transaction that is not durable yet.
    """

    def __init__(self, store: LogStore, partition: str, next_id: int) -> None:
        self._store = store
        self._partition = partition
        self._recent: deque[Entry] = deque()
        self._bytes = 0
        self.next_id = next_id

    def add(self, entries: Sequence[Entry]) -> None:
        """Adds transactions that have just become durable."""
        self._recent.extend(entries)
        self._bytes += sum(len(entry.data) + TRANSACTION_BYTES for entry in entries)
        self.next_id += len(entries)
        while self._bytes > RECENT_BYTES:
            self._bytes -= len(self._recent.popleft().data) + TRANSACTION_BYTES

    async def fed(self, first: int, last: int) -> list[FedTransaction]:
        """Returns durable transactions from ``first`` on, at least one and at most PORTION, none behind ``last``.

        Raises:
            LogUnavailableError: the store does not answer.
            LogCorruptError: the log does not read back as written, or lacks the transactions.
        """
        last = min(last, first + PORTION - 1)
        oldest = self.next_id - len(self._recent)
        if first >= oldest:
            # Found by index: a deque finds items near its ends at once.
            entries: Sequence[Entry] = [self._recent[at] for at in range(first - oldest, last - oldest + 1)]
        else:
            entries = await asyncio.to_thread(self._read, first, last, data=False)
        return [FedTransaction(tid, entry.req_id, header_of(entry)) for tid, entry in enumerate(entries, first)]

    async def data(self, transaction: int) -> bytes:
        """Returns a durable transaction's data; raises as :meth:`fed`."""
        oldest = self.next_id - len(self._recent)
        if transaction >= oldest:
            return self._recent[transaction - oldest].data
        (entry,) = await asyncio.to_thread(self._read, transaction, transaction, data=True)
        return entry.data

    def _read(self, first: int, last: int, *, data: bool) -> list[Entry]:
        found: list[Entry] = []
        for batch in self._store.read_batches(self._partition, first, last, data=data, strong=True):
            found += _between(batch, first, last)
        if not found:
            raise LogCorruptError(f"log partition {self._partition} has no transaction {first}")
        return found


def _between(batch: Batch, first: int, last: int) -> list[Entry]:
    return [entry for tid, entry in batch.entries_from(first) if tid <= last]
