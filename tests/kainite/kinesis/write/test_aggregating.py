"""Aggregates: what goes in comes out, in order, within the limit, and whatever was resharded meanwhile."""

from __future__ import annotations

import base64
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.record import RawRecord
from kainite.kinesis.aggregation import expand
from kainite.kinesis.shards import HashRange
from kainite.kinesis.write.aggregating import aggregated
from kainite.kinesis.write.put import StreamRecord

KEYS = st.integers(0, 3).map(lambda quarter: str(quarter * 2**126 + 17))
RECORDS = st.lists(st.builds(StreamRecord, st.binary(max_size=300), st.text(min_size=1, max_size=8), KEYS), max_size=60)


def read(records: list[StreamRecord], shard: HashRange) -> list[tuple[bytes, str]]:
    """Returns what a reader of the shard gets of the records that Kinesis puts on it."""
    taken = [
        RawRecord(str(place), r.partition_key, base64.b64encode(r.data).decode())
        for place, r in enumerate(records)
        if shard.start <= int(r.hash_key) <= shard.end
    ]
    return [(base64.b64decode(user.data or ""), user.key) for user in expand(taken, shard)]


@given(RECORDS, st.integers(200, 3000), st.integers(1, 40))
def test_each_record_comes_out_once_and_in_order_however_the_stream_was_cut(
    records: list[StreamRecord], limit: int, shards: int
) -> None:
    packed = aggregated(records, limit)
    width = 2**128 // shards
    cut = [HashRange(n * width, 2**128 - 1 if n == shards - 1 else (n + 1) * width - 1) for n in range(shards)]
    found = {key: [] for key in {r.hash_key for r in records}}  # type: ignore[var-annotated]
    for shard in cut:
        of_shard = [r for r in records if shard.start <= int(r.hash_key) <= shard.end]
        got = read(packed, shard)
        assert sorted(got) == sorted((r.data, r.partition_key) for r in of_shard)
        if len({r.hash_key for r in of_shard}) == 1:
            found[of_shard[0].hash_key] = got
            assert got == [(r.data, r.partition_key) for r in of_shard]


@given(RECORDS, st.integers(200, 3000))
def test_no_aggregate_is_larger_than_the_limit_and_none_could_have_taken_the_next_one_too(
    records: list[StreamRecord], limit: int
) -> None:
    packed = aggregated(records, limit)
    assert all(r.size <= limit or r in records for r in packed)
    for key in {r.hash_key for r in packed}:
        sizes = [r.size for r in packed if r.hash_key == key]
        assert all(one + other > limit - 150 for one, other in pairwise(sizes))


def test_a_record_that_is_alone_or_too_large_stays_as_it_is() -> None:
    large, small = StreamRecord(b"x" * 1000, "k", "1"), StreamRecord(b"y", "k", "2")
    assert aggregated([large, small], 500) == [large, small]
