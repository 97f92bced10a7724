"""Keeps deltas that came with the feed, so that the tasks that apply them need not read them from DynamoDB. No I/O.

Entries are kept by their transaction ids. An id means the same entry for as long as the log lives, so a kept entry
equals the one that a task would read. When there is no room, entries are dropped that lie below those of the latest
micro-batch; if that is not enough, a new one is not kept, since the next micro-batch wants the oldest ones first. What
was not kept a task reads from the log. A slice of a micro-batch is given to its task whole or not at all: reading one
missing entry costs a task as much as reading all of them.

Measured: reading and decoding the log took 230 of the 370 µs of processor time that a task used for a unit (TPC-B, a
backlog).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from kainite.log.format.entry import Batch, Entry, EntryKind
from kainite_spark.plan.given_parts import packed
from kainite_spark.plan.micro_batch import MicroBatch, Slice

KEPT: Final = 4
"""The most bytes that are kept, in multiples of a micro-batch's bytes: units wait, and are tried again."""

OVERHEAD: Final = 200
"""Bytes that an entry takes in addition to its deltas, approximately."""

_PARTS: Final = frozenset({EntryKind.FRAGMENT, EntryKind.UNIT, EntryKind.REFIT})


class Payloads:
    """Args: most: the most bytes of deltas that the tasks of one micro-batch are given."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._bytes = 0
        self._wanted_from = 0  # the lowest entry of the latest micro-batch

    def keep(self, batch: Batch) -> None:
        """Keeps the entries of units in a batch; the batch must have its data."""
        for tid, entry in enumerate(batch.entries, batch.first_id):
            if entry.kind in _PARTS and tid not in self._entries and self._has_room(size := _size(entry)):
                self._entries[tid] = entry
                self._bytes += size

    def _has_room(self, size: int) -> bool:
        """Makes room for a new entry, as far as what micro-batches have passed can be dropped."""
        while self._bytes + size > KEPT * self._most:
            oldest = next(iter(self._entries), self._wanted_from)
            if oldest >= self._wanted_from:
                return False
            self._bytes -= _size(self._entries.pop(oldest))
        return True

    def given(self, batch: MicroBatch) -> MicroBatch:
        """Returns a micro-batch whose slices carry their parts, as far as they are kept here and ``most`` allows."""
        self._wanted_from = min(piece.wanted[0].entry for piece in batch.slices)
        left = self._most
        slices: list[Slice] = []
        for piece in batch.slices:
            entries = self._all_of(piece)
            size = sum(map(_size, entries))
            if entries and size <= left:
                left -= size
                piece = replace(piece, given=packed(piece.units, entries))
            slices.append(piece)
        return replace(batch, slices=tuple(slices))

    def _all_of(self, piece: Slice) -> list[Entry]:
        """Returns a slice's entries; none unless all are kept here."""
        kept = [entry for wanted in piece.wanted if (entry := self._entries.get(wanted.entry)) is not None]
        return kept if len(kept) == len(piece.wanted) else []


def _size(entry: Entry) -> int:
    array = len(entry.data) if entry.piece is None else entry.piece.length
    return array + 8 * entry.touched.size + OVERHEAD
