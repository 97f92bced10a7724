"""Takes KPL aggregates apart: many user records inside one Kinesis record (:mod:`kainite.kinesis.kpl_message`). Pure.

The result is that of KCL's ``AggregatorUtil`` (docs/kcl.md, *Aggregated records*): the user records have the
sequence number of their record and sub-sequence numbers 0, 1, 2 …; a record that only begins like an aggregate
passes as it is. An aggregate with a user record that belongs to another shard is dropped: it was put just before a
split or merge, its producer saw the refusal of that record and sends it again.

Two rules differ from KCL's. An index beyond its table, and an explicit hash key that is not a number, make KCL drop
the rest of the aggregate, or, since Java 11, fail on it for ever; here the record passes as it is, as with any other
damage. An aggregate with a partition key longer than Kinesis allows passes as it is, too: the aggregate holds the key
once, but each of its records would repeat it.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from kainite.base.record import RawRecord
from kainite.kinesis.kpl_message import DIGEST_BYTES, MAGIC, digest, message_class
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange

EVERY_KEY = HashRange(0, MAX_HASH_KEY)
MAX_KEY_LENGTH = 256
"""The longest partition key, in characters: Kinesis's limit, and the KPL's."""

PORTION_CHARACTERS = 1024 * 1024
"""The most base64 characters of aggregates in a portion: small records take ten times as much when taken out."""

# The magic's 32 bits are five base64 characters and the first two bits, 10, of a sixth.
_START, _SIXTH = "84maw", frozenset("ghijklmnopqrstuv")


def marked(record: RawRecord) -> str:
    """Returns the base64 of a payload that begins as an aggregate does; an empty text for any other."""
    data = record.data or ""
    return data if data.startswith(_START) and data[5:6] in _SIXTH else ""


def expand(records: Sequence[RawRecord], hash_range: HashRange = EVERY_KEY) -> Sequence[RawRecord]:
    """Returns the user records of all aggregates, and the plain records among them, in order.

    Args:
        records: the records as Kinesis gave them. If no record is an aggregate, this list itself is returned.
        hash_range: the shard's range of hash keys; an aggregate that reaches beyond it is dropped.
    """
    if not any_marked(records):
        return records
    return [user for record in records for user in _user_records(record, hash_range)]


def portions(records: Sequence[RawRecord]) -> tuple[Sequence[RawRecord], ...]:
    """Returns the records in slices; expanding one slice after another bounds the memory that expansion takes.

    Records without aggregates are one slice. None is empty, unless there are no records.
    """
    if not any_marked(records):
        return (records,)
    cuts, held = [0], 0
    for index, record in enumerate(records):
        if size := len(marked(record)):
            held += size
            if held > PORTION_CHARACTERS and index > cuts[-1]:
                cuts.append(index)
                held = size
    return tuple(records[begin:end] for begin, end in pairwise((*cuts, len(records))))


def any_marked(records: Sequence[RawRecord]) -> bool:
    """Tells whether any record begins as an aggregate does."""
    # This runs over every record that is read: nearly all are told apart by one character, without a call.
    for record in records:
        data = record.data
        if data and data[0] == "8" and marked(record):
            return True
    return False


def _user_records(record: RawRecord, hash_range: HashRange) -> Iterable[RawRecord]:
    aggregate = _parse(data) if (data := marked(record)) else None
    if aggregate is None:
        return (record,)
    try:
        keys = _partition_keys(aggregate)
        if any(not hash_range.start <= key <= hash_range.end for key in _hash_keys(aggregate, keys)):
            return ()
        return [
            RawRecord(
                record.sequence,
                keys[user.partition_key_index],
                b2a_base64(user.data, newline=False).decode(),
                record.arrived,
                sub,
            )
            for sub, user in enumerate(aggregate.records)
        ]
    except (IndexError, ValueError):
        return (record,)


def _parse(data: str) -> Any:
    """Returns the protobuf message of an aggregate; None when the payload is not an aggregate."""
    try:
        packed = a2b_base64(data)
        body, found = packed[len(MAGIC) : -DIGEST_BYTES], packed[-DIGEST_BYTES:]
        if not body or digest(body) != found:
            return None
        aggregate, broken = _message()
    except ValueError:
        return None
    try:
        aggregate.ParseFromString(body)
    except broken:
        return None
    return aggregate if aggregate.IsInitialized() else None


def _partition_keys(aggregate: Any) -> list[str]:
    keys = [key.decode(errors="replace") for key in aggregate.partition_key_table]
    if any(len(key) > MAX_KEY_LENGTH for key in keys):
        raise ValueError("a partition key is longer than Kinesis allows")
    return keys


def _hash_keys(aggregate: Any, keys: Sequence[str]) -> Iterator[int]:
    """Yields the hash key of each user record, one by one: a later key may be wrong after earlier ones were right.

    Raises:
        IndexError, ValueError: an index or an explicit hash key is wrong.
    """
    hashed = [int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()) for key in keys]
    explicit = list(aggregate.explicit_hash_key_table)
    for user in aggregate.records:
        own = user.HasField("explicit_hash_key_index")
        yield int(explicit[user.explicit_hash_key_index]) if own else hashed[user.partition_key_index]


def _message() -> tuple[Any, type[Exception]]:
    """Returns an empty AggregatedRecord, and the error that its parser raises."""
    from google.protobuf.message import DecodeError

    return message_class()(), DecodeError
