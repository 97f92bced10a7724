"""Packs records into KPL aggregates (:mod:`kainite.kinesis.kpl_message`). Pure.

Rules
=====

* All records of an aggregate have one hash key, which is also the aggregate's. So the shard that takes the aggregate
  takes each of its records, whatever was split or merged since they were packed. KCL drops an aggregate with a record
  of another shard (docs/kcl.md, *Aggregated records*).
* Records of one hash key stay in order, within an aggregate and from one to the next.
* An aggregate takes at most the given bytes, its partition key included. A record that would be alone in one, because
  of its size or because no other record came, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kainite.kinesis.kpl_message import DIGEST_BYTES, MAGIC, digest, message_class
from kainite.kinesis.write.put import StreamRecord

_AROUND: Final = len(MAGIC) + DIGEST_BYTES + 2 + 39
"""The magic, the digest, and the hash key, which has up to 39 digits."""
_RECORD: Final = 1 + 4 + 2 * (1 + 3) + 1 + 4
"""A record's tag and length; its two indexes; the tag and length of its data."""
_KEY: Final = 1 + 2
"""The tag and length of a partition key."""


def aggregated(records: Iterable[StreamRecord], limit: int) -> list[StreamRecord]:
    """Returns records that hold the given records; they are as few as the limit allows.

    Args:
        records: the records, in the order in which they are to be put.
        limit: most bytes of an aggregate.
    """
    made: list[StreamRecord] = []
    groups: dict[str, _OpenAggregate] = {}
    for record in records:
        group = groups.get(record.hash_key)
        if group is None or not group.takes(record):
            if group is not None:
                made.append(group.packed())
            group = groups[record.hash_key] = _OpenAggregate(limit)
        group.add(record)
    return [*made, *(group.packed() for group in groups.values())]


class _OpenAggregate:
    """The records of one hash key that an aggregate will hold."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._records: list[StreamRecord] = []
        self._keys: dict[str, int] = {}
        self._size = _AROUND

    def takes(self, record: StreamRecord) -> bool:
        return self._size + self._added(record) <= self._limit

    def add(self, record: StreamRecord) -> None:
        """Adds a record; adds the first record even if it is larger than the limit."""
        self._size += self._added(record)
        self._keys.setdefault(record.partition_key, len(self._keys))
        self._records.append(record)

    def packed(self) -> StreamRecord:
        """Returns the records as one aggregate; a single record is returned as it is."""
        first = self._records[0]
        if len(self._records) == 1:
            return first
        message = message_class()(explicit_hash_key_table=[first.hash_key.encode()])
        message.partition_key_table.extend(key.encode() for key in self._keys)
        for record in self._records:
            message.records.add(
                partition_key_index=self._keys[record.partition_key], explicit_hash_key_index=0, data=record.data
            )
        body = message.SerializeToString()
        return StreamRecord(MAGIC + body + digest(body), first.partition_key, first.hash_key)

    def _added(self, record: StreamRecord) -> int:
        """Returns the bytes that a record adds, or a few more; the first record's partition key also stands outside."""
        if record.partition_key in self._keys:
            return _RECORD + len(record.data)
        key = len(record.partition_key.encode())
        return _RECORD + len(record.data) + (_KEY + key) * (1 if self._records else 2)
