"""A shard of moto's whose calls cost the same however many records it holds.

moto's own shard walks all of its records to find those behind an iterator, its first one and its last one, so a
stream gets slower with every record that is put. Sequence numbers of a shard of moto's are dense from 1, so a record
is found by its number. moto's shard also says of itself that two puts at the same time may get one number, of which
one record would be lost; here a lock keeps them apart.
"""

from __future__ import annotations

import itertools
import threading

from moto.kinesis import models
from moto.kinesis.models import Record, Shard

_PUT = threading.Lock()


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


def install() -> None:
    """Makes every stream that moto creates in this process, from now on, consist of such shards."""
    models.Shard = DirectShard  # type: ignore[misc]
