"""Makes one source's records into batches, by its checkpoint, its shard and its settings. Blocks; no I/O.

A reply with many KPL aggregates is made into batches a portion at a time, each when the queue has room for it: taken
apart all at once, it could need ten times its own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kainite.base.checkpoint import Checkpoint
from kainite.base.position import Position
from kainite.base.record import RawRecord, position_of
from kainite.kinesis.aggregation import any_marked, portions
from kainite.kinesis.read.record_batch import RecordBatch, Render, make_batch, make_batches
from kainite.kinesis.shards import HashRange
from kainite.kinesis.start_position import done_before

Batches: TypeAlias = tuple[RecordBatch, ...]


@dataclass(frozen=True, slots=True)
class Portioned:
    """The records of one reply or event, of which one portion at a time is made into batches.

    Attributes:
        batches: the batches that were made of the latest portion.
        rest: the portions that have not been made into batches yet.
        last: the position of the last record of all portions; None without records.
        millis_behind_latest: how far the last record is behind the shard's newest one, milliseconds; None if unknown.
    """

    batches: Batches = ()
    rest: tuple[Sequence[RawRecord], ...] = ()
    last: Position | None = None
    millis_behind_latest: int | None = None


@dataclass(frozen=True, slots=True)
class Batcher:
    """The rules by which a source makes batches.

    Attributes:
        start: the lease's checkpoint; records up to it are left out.
        cut_at: no batch straddles this position (the serialization log's, for this shard).
        hash_range: the shard's range of hash keys: KPL aggregates that reach beyond it are dropped; None: none is.
        render: makes the child's line of a batch's records.
        even_empty: whether a reply without records makes an empty batch.
    """

    start: Checkpoint
    render: Render
    cut_at: Position | None = None
    hash_range: HashRange | None = None
    even_empty: bool = False

    def begin(
        self, records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False
    ) -> Portioned:
        """Returns the batches of the first portion of the records, and the other portions, for :meth:`next`.

        Args:
            records: the records as Kinesis gave them.
            millis_behind_latest: how far the last record is behind the shard's newest one, milliseconds.
            plain: whether every text of the records is ASCII and needs no escape in JSON.
        """
        plain = plain and not any_marked(records)
        first, *rest = (records,) if plain else portions(records)
        batches = self._batches(first, millis_behind_latest, plain=plain)
        if not batches and not rest and self.even_empty:
            batches = (make_batch((), millis_behind_latest, self.render, plain=plain),)
        last = position_of(records[-1]) if records else None
        return Portioned(batches, tuple(rest), last, millis_behind_latest)

    def next(self, portioned: Portioned) -> Portioned:
        """Returns the batches of the next portion, and the portions after it."""
        batches = self._batches(portioned.rest[0], portioned.millis_behind_latest)
        return replace(portioned, batches=batches, rest=portioned.rest[1:])

    def _batches(
        self, records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False
    ) -> Batches:
        # No other records are left out: a source continues after the last record that it took.
        after = done_before(self.start, self.cut_at)
        return make_batches(
            records, millis_behind_latest,
            after=after, cut_at=self.cut_at, hash_range=self.hash_range, render=self.render,
            plain=plain,
        )  # fmt: skip
