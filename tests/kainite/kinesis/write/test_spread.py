"""Units and records over the shards."""

from __future__ import annotations

from collections import Counter

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import StreamError
from kainite.kinesis.shards import HashRange, Shard
from kainite.kinesis.write.put import StreamRecord
from kainite.kinesis.write.spread import REMEMBERED_UNITS, Spread, open_ranges, unit_of
from kainite.settings import ExtractSpread

KEYS = 2**128


def ranges(shards: int) -> list[HashRange]:
    step = KEYS // shards
    return [HashRange(n * step, KEYS - 1 if n == shards - 1 else (n + 1) * step - 1) for n in range(shards)]


def shard_of(record: StreamRecord, shards: int) -> int:
    return next(n for n, r in enumerate(ranges(shards)) if r.start <= int(record.hash_key) <= r.end)


def message(uow: str, ordinal: int) -> bytes:
    return orjson.dumps({"uow": uow, "ordinal": ordinal})


@given(st.integers(1, 9), st.lists(st.integers(0, 20), max_size=100))
def test_units_go_whole_to_one_shard_and_in_turn_over_all(shards: int, names: list[int]) -> None:
    spread = Spread(ExtractSpread.UNIT, ranges(shards))
    where = [(name, shard_of(spread.record(message(f"T{name}", i)), shards)) for i, name in enumerate(names)]
    assert len(set(where)) == len(set(names)) == spread.units
    used = Counter(shard for _, shard in set(where))
    assert not used or max(used.values()) - min(used.get(n, 0) for n in range(shards)) <= 1


@given(st.integers(1, 9), st.integers(0, 60), st.sampled_from([b"plain", b'{"uow":"T"}']))
def test_records_go_in_turn_over_all(shards: int, count: int, payload: bytes) -> None:
    spread = Spread(ExtractSpread.RECORD, ranges(shards))
    used = Counter(shard_of(spread.record(payload), shards) for _ in range(count))
    assert not used or max(used.values()) - min(used.get(n, 0) for n in range(shards)) <= 1


def test_messages_without_a_unit_go_in_turn_even_where_units_do_not() -> None:
    spread = Spread(ExtractSpread.UNIT, ranges(3))
    assert {shard_of(spread.record(b"plain"), 3) for _ in range(3)} == {0, 1, 2}


@pytest.mark.parametrize(("before", "after"), [(1, 4), (2, 4), (3, 2)])
def test_after_resharding_the_new_shards_are_used_and_units_stay_where_they_were_or_in_its_child(
    before: int, after: int
) -> None:
    spread = Spread(ExtractSpread.UNIT, ranges(before))
    begun = spread.record(message("T1", 0))
    spread.over(ranges(after))
    assert {shard_of(spread.record(message(f"N{i}", 0)), after) for i in range(after)} == set(range(after))
    assert {spread.record(message("T1", i)).hash_key for i in range(9)} == {begun.hash_key}


def test_only_so_many_units_are_remembered() -> None:
    spread = Spread(ExtractSpread.UNIT, ranges(2))
    for number in range(REMEMBERED_UNITS + 1):
        spread.record(message(f"T{number}", 0))
    spread.record(message("T0", 1))
    assert spread.units == REMEMBERED_UNITS + 2


def test_a_unit_s_name_is_the_partition_key_as_far_as_kinesis_takes_it() -> None:
    spread = Spread(ExtractSpread.UNIT, ranges(1))
    assert spread.record(message("ü" * 300, 0)).partition_key == "ü" * 256
    assert spread.record(b"plain").partition_key


@pytest.mark.parametrize(
    ("payload", "unit"),
    [
        (b'{"uow":"T-17","x":1}', "T-17"),
        (b'{"uow":""}', None),
        (b'{"uow":5}', None),
        (b'["uow"]', None),
        (b'{"uow":"T"', None),
        (b'{"row":{"uow":"T"}}', None),
        (b"", None),
    ],
)
def test_a_unit_is_what_a_json_object_says(payload: bytes, unit: str | None) -> None:
    assert unit_of(payload) == unit


def test_closed_shards_take_no_records() -> None:
    (whole,) = ranges(1)
    assert open_ranges([Shard("a", hash_range=whole, open=False), Shard("b", hash_range=whole)]) == [whole]
    with pytest.raises(StreamError, match="no open shard"):
        Spread(ExtractSpread.UNIT, [])
