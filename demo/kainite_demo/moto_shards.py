"""A shard of moto's whose calls cost the same however many records it holds; and streams that can be resharded.

moto's own shard walks all of its records to find those behind an iterator, its first one and its last one, so a
stream gets slower with every record that is put. Sequence numbers of a shard of moto's are dense from 1, so a record
is found by its number. moto's shard also says of itself that two puts at the same time may get one number, of which
one record would be lost; here a lock keeps them apart.

A stream of moto's goes on putting records on a shard that was split or merged, and a reader never comes to the end of
such a shard. Kinesis closes it: it keeps its records and takes no more, and its reader gets no further iterator.
"""

from __future__ import annotations

import itertools
import threading
from hashlib import md5
from typing import Any

from moto.kinesis import models
from moto.kinesis.models import KinesisBackend, Record, Shard, Stream
from moto.kinesis.utils import decompose_shard_iterator

_PUT = threading.RLock()


class DirectShard(Shard):
    """A shard whose records are looked up by number; gives the answers that moto's own shard gives."""

    def get_records(self, last_sequence_id: str, limit: int | None) -> tuple[list[Record], int, int]:
        last = int(last_sequence_id)
        end = self.get_max_sequence_number() + 1
        first = max(last + 1, 1)
        numbers = range(first, end if limit is None else min(end, first + limit))
        if not numbers:
            return [], last, 0
        found = [self.records[number] for number in numbers]
        behind = self.records[end - 1].created_at - found[-1].created_at
        return found, numbers[-1], int(behind * 1000)

    def put_record(self, partition_key: str, data: str, explicit_hash_key: str) -> str:
        with _PUT:
            return super().put_record(partition_key, data, explicit_hash_key)

    def get_min_sequence_number(self) -> int:
        return next(iter(self.records), 0)

    def get_max_sequence_number(self) -> int:
        return next(reversed(self.records), 0)

    def get_sequence_number_at(self, at_timestamp: float) -> int:
        # Readers begin near the tip, so the walk from there is short.
        newest_first = (self.records[number] for number in range(self.get_max_sequence_number(), 0, -1))
        before = itertools.dropwhile(lambda record: record.created_at >= at_timestamp, newest_first)
        return next((record.sequence_number for record in before), 0)


class DirectStream(Stream):
    """A stream whose shards close when they are split or merged."""

    def get_shard_for_key(self, partition_key: str, explicit_hash_key: str) -> Shard | None:
        hashed = md5(partition_key.encode(), usedforsecurity=False).hexdigest()
        key = int(explicit_hash_key) if explicit_hash_key else int(hashed, 16)
        still_open = [shard for shard in self.shards.values() if shard.is_open]
        return next((shard for shard in still_open if shard.starting_hash <= key <= shard.ending_hash), None)

    def put_record(self, partition_key: str, explicit_hash_key: str, data: str) -> tuple[str, str]:
        with _PUT:  # the lock keeps shards open meanwhile
            return super().put_record(partition_key, explicit_hash_key, data)

    def split_shard(self, shard_to_split: str, new_starting_hash_key: str) -> None:
        with _PUT:
            parent, middle = self.shards[shard_to_split], int(new_starting_hash_key)
            for start, end in ((parent.starting_hash, middle - 1), (middle, parent.ending_hash)):
                self._add(start, end, parent=parent.shard_id)
            parent.is_open = False

    def merge_shards(self, shard_to_merge: str, adjacent_shard_to_merge: str) -> None:
        with _PUT:
            left, right = self.shards[shard_to_merge], self.shards[adjacent_shard_to_merge]
            ends = sorted((left.starting_hash, left.ending_hash, right.starting_hash, right.ending_hash))
            self._add(ends[0], ends[-1], parent=left.shard_id, adjacent_parent=right.shard_id)
            left.is_open = right.is_open = False

    def _add(self, start: int, end: int, **parents: str) -> None:
        shard = DirectShard(len(self.shards), starting_hash=start, ending_hash=end, **parents)
        self.shards[shard.shard_id] = shard


_get_records = KinesisBackend.get_records


def _ending(self: KinesisBackend, stream_arn: str | None, shard_iterator: str, limit: int | None) -> Any:
    """Answers as moto does, without a further iterator once a closed shard has been read to its end."""
    name, shard_id, _ = decompose_shard_iterator(shard_iterator)
    shard = self.describe_stream(stream_arn=stream_arn, stream_name=name).get_shard(shard_id)
    closed = not shard.is_open  # before the read: what comes until then is read
    following, records, behind = _get_records(self, stream_arn, shard_iterator, limit)
    over = closed and not records
    return None if over else following, records, behind


def install() -> None:
    """Makes every stream that moto creates in this process from now on a stream of these classes."""
    models.Shard = DirectShard  # type: ignore[misc]
    models.Stream = DirectStream  # type: ignore[misc]
    KinesisBackend.get_records = _ending  # type: ignore[method-assign]
