"""Reads a log partition back: into a :class:`~kainite.log.state.folded.FoldedLog`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogHead, LogStore
from kainite.log.format.entry import ControlMeta
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.snapshot_sections import part_ids

T = TypeVar("T")


def load_state(store: LogStore, partition: str, *, strong: bool = True, names: bool = False) -> FoldedLog:
    """Returns the log folded up to its tail: the latest snapshot, and every entry after the snapshot.

    Args:
        store: the log's store.
        partition: the partition's name; one that was never mounted gives an empty state.
        strong: whether to read every entry that is durable now; otherwise the last entries may be missing.
        names: whether to read the names of dispatched units too, which only the owner needs; otherwise the state
            disregards them.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    while True:
        head = store.read_head(partition)
        try:
            return _load(store, partition, head, strong=strong, names=names)
        except LogCorruptError:
            newer = store.read_head(partition)
            if head is None or newer is None or newer.low_water_mark == head.low_water_mark:
                raise
            # The owner truncated the entries during the read; its head names a newer snapshot to begin from.


def fold_rest(store: LogStore, partition: str, state: FoldedLog, *, strong: bool = True) -> None:
    """Folds every entry that a state lacks; the arguments are those of :func:`load_state`.

    Raises:
        LogCorruptError: the log does not read back as written, or the first entries that the state lacks are truncated.
            The state is not to be used then.
    """
    for batch in store.read_batches(partition, state.next_id, data=False, strong=strong):
        for tid, entry in batch.entries_from(state.next_id):
            state.apply(tid, entry, batch.time_ms)


def read_from_low(store: LogStore, partition: str, read: Callable[[int], T], head: LogHead | None = None) -> T:
    """Returns what ``read`` makes of a partition from its low-water mark on; reads again where entries leave meanwhile.

    Args:
        store: the log's store.
        partition: the partition's name.
        read: reads from the given id to the tail.
        head: the partition's head, where it has just been read.

    Raises:
        LogCorruptError: the partition does not read back as written.
    """
    low = low_water_mark(store, partition) if head is None else head.low_water_mark
    while True:
        try:
            return read(low)
        except LogCorruptError:
            if (now := low_water_mark(store, partition)) == low:
                raise
            low = now  # entries were truncated during the read


def low_water_mark(store: LogStore, partition: str) -> int:
    """Returns the first id that is not truncated; 0 for a partition that was never mounted."""
    head = store.read_head(partition)
    return head.low_water_mark if head else 0


def _load(store: LogStore, partition: str, head: LogHead | None, *, strong: bool, names: bool) -> FoldedLog:
    state = _start(store, partition, head) if head and head.snapshot >= 0 else FoldedLog()
    if not names:
        state.recent.disregard()
        state.ended.disregard()
    fold_rest(store, partition, state, strong=strong)
    if names:
        state.recent.recall(store.read_names(partition))
    return state


def _start(store: LogStore, partition: str, head: LogHead) -> FoldedLog:
    at = head.snapshot
    for batch in store.read_batches(partition, at, at, strong=True):
        entry = batch.entries[at - batch.first_id]
        parts = part_ids(entry.data)
        state = snapshot.load(b"".join(_part(store, partition, part) for part in parts))
        if not isinstance(entry.meta, ControlMeta) or state.next_id != entry.meta.since:
            raise LogCorruptError(f"log partition {partition}: entry {at} is not the snapshot that its head names")
        return state
    raise LogCorruptError(f"log partition {partition}: its snapshot, entry {at}, is missing")


def _part(store: LogStore, partition: str, at: int) -> bytes:
    for batch in store.read_batches(partition, at, at, strong=True):
        return batch.entries[at - batch.first_id].data
    raise LogCorruptError(f"log partition {partition}: entry {at}, a part of its snapshot, is missing")
