"""Makes one source's records into batches, by its checkpoint, its shard and its settings. Blocks; no I/O.

A reply with many KPL aggregates is made into batches a portion at a time, each when the queue has room for it: taken
apart all at once, it could need ten times its own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.checkpoint import Checkpoint
from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.kinesis.aggregation import portions
from kainite.kinesis.read.record_batch import RecordBatch, Render, make_batch, make_batches
from kainite.kinesis.shards import HashRange
from kainite.kinesis.start_position import done_before

Batches: TypeAlias = tuple[RecordBatch, ...]
Portions: TypeAlias = tuple[Sequence[RawRecord], ...]


@dataclass(frozen=True, slots=True)
class Batcher:
    """How a source makes batches.

    Attributes:
        start: the lease's checkpoint; records up to it are left out.
        cut_at: no batch straddles this position (the serialization log's, for this shard).
        hash_range: of the shard: KPL aggregates that reach beyond it are dropped. None: none is.
        render: makes the child's line of a batch's records.
        even_empty: whether nothing at all makes an empty batch.
    """

    start: Checkpoint
    render: Render
    cut_at: Position | None = None
    hash_range: HashRange | None = None
    even_empty: bool = False

    def begin(self, records: Sequence[RawRecord], millis_behind_latest: int | None) -> tuple[Batches, Portions]:
        """Returns batches of the first portion of the records, and the other portions, for :meth:`batches`."""
        first, *rest = portions(records)
        batches = self.batches(first, millis_behind_latest)
        if not batches and not rest and self.even_empty:
            batches = (make_batch((), millis_behind_latest, self.render),)
        return batches, tuple(rest)

    def batches(self, records: Sequence[RawRecord], millis_behind_latest: int | None) -> Batches:
        """Returns the batches of one portion."""
        # Nothing else is to be left out: a source goes on after the last record that it took.
        after = done_before(self.start, self.cut_at)
        return make_batches(
            records, millis_behind_latest,
            after=after, cut_at=self.cut_at, hash_range=self.hash_range, render=self.render,
        )  # fmt: skip
