"""The demo's shard gives the answers of moto's, and its calls cost the same with many records as with few."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from moto.kinesis.models import Record, Shard, kinesis_backends

from kainite_demo.moto_shards import DirectShard
from support.names import unique

_RANGE = (0, 2**128 - 1)


class _Counted(OrderedDict[int, Record]):
    """Counts the records and numbers that are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def __getitem__(self, number: int) -> Record:
        self.looks += 1
        return super().__getitem__(number)

    def __iter__(self) -> Iterator[int]:
        return self._seen(super().__iter__())

    def __reversed__(self) -> Any:
        return self._seen(super().__reversed__())

    def keys(self) -> Any:
        return iter(self)

    def values(self) -> Any:
        return (self[number] for number in self)

    def items(self) -> Any:
        return ((number, self[number]) for number in self)

    def _seen(self, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            self.looks += 1
            yield number


def filled(shard: Shard, times: list[int]) -> Shard:
    """Puts a record for each time, in seconds."""
    for number, at in enumerate(times, 1):
        shard.put_record("key", str(number), "")
        shard.records[number].created_at = float(at)
    return shard


def numbers(records: list[Record]) -> list[int]:
    return [record.sequence_number for record in records]


arrivals = st.lists(st.integers(0, 20), max_size=12).map(sorted)


@given(arrivals, st.integers(-1, 14), st.none() | st.integers(1, 15))
def test_the_records_behind_an_iterator_are_those_of_moto(times: list[int], last: int, limit: int | None) -> None:
    own, motos = filled(DirectShard(0, *_RANGE), times), filled(Shard(0, *_RANGE), times)

    records, *told = own.get_records(str(last), limit)
    expected, *expected_told = motos.get_records(str(last), limit)

    assert numbers(records) == numbers(expected)
    assert told == expected_told


@given(arrivals, st.integers(0, 21))
def test_what_a_shard_tells_of_itself_is_what_moto_tells(times: list[int], at: int) -> None:
    own, motos = filled(DirectShard(0, *_RANGE), times), filled(Shard(0, *_RANGE), times)

    assert own.to_json() == motos.to_json()
    assert own.get_sequence_number_at(at) == motos.get_sequence_number_at(at)


def _looks_of_calls(shard: Shard, records: int) -> int:
    shard.records = counted = _Counted()
    filled(shard, [0] * records)
    counted.looks = 0
    shard.put_record("key", "data", "")
    shard.get_records(str(records - 2), 10)
    shard.to_json()
    return counted.looks


def test_the_cost_of_a_call_does_not_grow_with_the_shard() -> None:
    assert _looks_of_calls(DirectShard(0, *_RANGE), 2000) == _looks_of_calls(DirectShard(0, *_RANGE), 20)
    assert _looks_of_calls(Shard(0, *_RANGE), 200) > _looks_of_calls(Shard(0, *_RANGE), 20) + 180


def test_puts_at_the_same_time_lose_no_record() -> None:
    shard = DirectShard(0, *_RANGE)
    threads = [threading.Thread(target=lambda: [shard.put_record("key", "", "") for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert list(shard.records) == list(range(1, 1601))


def test_streams_of_the_test_server_have_such_shards(kinesis: Any, moto_endpoint: str) -> None:
    name = unique("direct")
    kinesis.create_stream(StreamName=name, ShardCount=2)
    try:
        backends = (region for account in kinesis_backends.values() for region in account.values())
        streams = [backend.streams[name] for backend in backends if name in backend.streams]
        assert [type(shard) for stream in streams for shard in stream.shards.values()] == [DirectShard] * 2
    finally:
        kinesis.delete_stream(StreamName=name)
