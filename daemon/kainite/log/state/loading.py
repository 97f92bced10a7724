"""Reading a log partition back into a :class:`~kainite.log.state.folded.FoldedLog`."""

from __future__ import annotations

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Batch
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.store.contract import LogHead, LogStore


def load_state(store: LogStore, partition: str, *, strong: bool = True, dedup_window: int = 100_000) -> FoldedLog:
    """The log folded up to its tail: the latest snapshot, and every entry after it.

    Args:
        store: where the log is.
        partition: its name; one that was never mounted gives an empty state.
        strong: read everything that is durable now; without it, the last entries may be missing.
        dedup_window: for a log without a snapshot (a snapshot carries its own).

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    while True:
        head = store.read_head(partition)
        try:
            return _load(store, partition, head, strong=strong, dedup_window=dedup_window)
        except LogCorruptError:
            newer = store.read_head(partition)
            if head is None or newer is None or newer.low_water_mark == head.low_water_mark:
                raise
            # The owner truncated what we were about to read: a newer snapshot stands.


def _load(store: LogStore, partition: str, head: LogHead | None, *, strong: bool, dedup_window: int) -> FoldedLog:
    state = _start(store, partition, head) if head and head.snapshot >= 0 else FoldedLog(dedup_window)
    for batch in store.read_batches(partition, state.next_id, data=False, strong=strong):
        fold(state, batch)
    return state


def fold(state: FoldedLog, batch: Batch) -> None:
    """Fold a batch's entries, leaving out those that ``state`` has already."""
    for tid, entry in enumerate(batch.entries, batch.first_id):
        if tid >= state.next_id:
            state.apply(tid, entry, batch.time_ms)


def _start(store: LogStore, partition: str, head: LogHead) -> FoldedLog:
    at = head.snapshot
    for batch in store.read_batches(partition, at, at, strong=True):
        entry = batch.entries[at - batch.first_id]
        state = snapshot.load(entry.data)
        if state.next_id != at:
            raise LogCorruptError(f"log partition {partition}: entry {at} is not the snapshot that its head names")
        state.apply(at, entry, batch.time_ms)
        return state
    raise LogCorruptError(f"log partition {partition}: its snapshot, entry {at}, is missing")
