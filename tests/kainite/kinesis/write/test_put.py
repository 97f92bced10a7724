"""PutRecords: packing, and sending again what was refused."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.write.put import LANES, MAX_BYTES, MAX_RECORDS, StreamRecord, StreamWriter, lanes, pack
from support.names import unique


def record(name: int, size: int = 10) -> StreamRecord:
    return StreamRecord(
        data=str(name).encode().ljust(size), partition_key="k", hash_key=str(2**126 + name % 2 * 2**127)
    )


def put_all(kinesis: Any, stream: str, records: Sequence[StreamRecord], limit: float = 30.0) -> None:
    left = list(records)
    StreamWriter(kinesis, stream, limit=limit).put(left)
    assert not left


class FullStream:
    """A double of Kinesis that refuses: each call takes every ``taken``-th record only."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.calls = 0
        self.data: list[bytes] = []

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.calls += 1
        results: list[dict[str, Any]] = []
        for place, entry in enumerate(Records):
            if place % self.every:
                results.append({"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow down"})
            else:
                self.data.append(entry["Data"])
                results.append({"SequenceNumber": "1", "ShardId": "0"})
        return {"FailedRecordCount": 0, "Records": results}


@settings(max_examples=40)
@given(st.lists(st.integers(10, 1_000_000), max_size=60), st.integers(0, 1200))
def test_batches_keep_order_and_both_limits(large: list[int], small: int) -> None:
    records = [record(i, size) for i, size in enumerate(large)] + [record(i) for i in range(small)]
    batches = list(pack(records))
    assert [r for batch in batches for r in batch] == records
    assert all(0 < len(batch) <= MAX_RECORDS for batch in batches)
    assert all(sum(r.size for r in batch) <= MAX_BYTES for batch in batches)


@given(st.lists(st.integers(0, 9), max_size=60))
def test_each_shard_has_one_lane_and_its_records_keep_their_order(shards: list[int]) -> None:
    records = [StreamRecord(str(place).encode(), "k", str(shard)) for place, shard in enumerate(shards)]
    laid = lanes(records, lambda one: int(one.hash_key))
    assert len(laid) == len({shard % LANES for shard in shards})
    assert sorted((one for lane in laid for one in lane), key=lambda one: int(one.data)) == records
    assert all([int(one.data) for one in lane] == sorted(int(one.data) for one in lane) for lane in laid)
    assert all(sum(one.hash_key == str(shard) for one in lane) in (0, shards.count(shard))
               for lane in laid for shard in shards)  # fmt: skip


class TwoShards(FullStream):
    """A double of Kinesis whose second shard takes nothing until all of the first one's records are there."""

    def __init__(self, first: int, *, error: Exception | None = None) -> None:
        super().__init__(every=1)
        self.first = first
        self.error = error
        self.whole = threading.Event()

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        if int(Records[0]["ExplicitHashKey"]) >= 2**127:
            assert self.whole.wait(30), "the first shard does not wait for the second one"
            if self.error is not None:
                raise self.error
        answer = super().put_records(StreamName, Records)
        if sum(data.strip().isdigit() and int(data) % 2 == 0 for data in self.data) == self.first:
            self.whole.set()
        return answer


def test_calls_for_different_shards_are_made_at_the_same_time() -> None:
    records = [record(i) for i in range(3 * MAX_RECORDS)]
    stream, left = TwoShards(len(records) // 2), records.copy()
    StreamWriter(stream, "s").put(left, lambda one: int(one.hash_key) >> 127)  # type: ignore[arg-type]
    assert not left
    for parity in (0, 1):
        arrived = [int(data) for data in stream.data if int(data) % 2 == parity]
        assert arrived == sorted(arrived), "a shard's calls are made one after the other"


def test_after_an_error_of_one_lane_only_what_is_not_there_is_left() -> None:
    records = [record(i) for i in range(2 * MAX_RECORDS)]
    stream, left = TwoShards(MAX_RECORDS, error=KeyError("broken")), records.copy()
    with pytest.raises(StreamError, match="PutRecords is refused"):
        StreamWriter(stream, "s").put(left, lambda one: int(one.hash_key) >> 127)  # type: ignore[arg-type]
    assert left == [record(i) for i in range(1, 2 * MAX_RECORDS, 2)]


def test_an_answer_that_broke_off_is_no_success() -> None:
    class Dying(FullStream):
        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            answer = super().put_records(StreamName, Records)
            return answer if self.calls > 1 else {}

    stream = Dying(every=1)
    put_all(stream, "s", [record(1)])
    assert stream.calls == 2


def test_a_record_that_kinesis_never_takes_is_refused_at_once() -> None:
    stream = FullStream(every=1)
    with pytest.raises(StreamError, match=r"the record with key .k. takes 1048577 bytes: Kinesis takes 1 MiB"):
        put_all(stream, "s", [*(record(i) for i in range(MAX_RECORDS)), record(1, 1024 * 1024)])
    assert stream.calls == 0, "nothing is put of what cannot be put as a whole"


def test_only_refused_records_are_sent_again() -> None:
    stream = FullStream(every=2)
    put_all(stream, "s", [record(i) for i in range(20)])
    assert sorted(stream.data) == sorted(record(i).data for i in range(20))


def test_after_an_error_only_what_is_not_there_is_left() -> None:
    class Full(FullStream):
        taken = iter([1, 2])  # all of the first batch, half of the second one, and then hardly any

        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            self.every = next(self.taken, MAX_RECORDS)
            return super().put_records(StreamName, Records)

    records = [record(i) for i in range(2 * MAX_RECORDS + 5)]
    stream, left = Full(every=1), records.copy()
    with pytest.raises(StreamUnavailableError):
        StreamWriter(stream, "s", limit=0.3).put(left)  # type: ignore[arg-type]
    assert 5 < len(left) < MAX_RECORDS
    stream.taken = iter([1, 1])
    StreamWriter(stream, "s").put(left)  # type: ignore[arg-type]
    assert sorted(stream.data) == sorted(record.data for record in records)


def test_a_stream_that_goes_on_refusing_is_given_up_with_its_own_words() -> None:
    class Refusing(FullStream):
        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            return {"Records": [{"ErrorCode": "InternalFailure", "ErrorMessage": "broken"} for _ in Records]}

    with pytest.raises(StreamUnavailableError, match=r"refused 2 records until the limit .* InternalFailure: br"):
        put_all(Refusing(1), "s", [record(1), record(2)], limit=0.1)


def test_a_put_in_another_thread_can_be_given_up() -> None:
    class Refusing(FullStream):
        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            writer.give_up()
            return {"Records": [{"ErrorCode": "InternalFailure"} for _ in Records]}

    writer = StreamWriter(Refusing(1), "s", limit=600)  # type: ignore[arg-type]
    ended = threading.Event()

    def put() -> None:
        with pytest.raises(StreamUnavailableError):
            writer.put([record(1)])
        ended.set()

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    assert ended.wait(20)
    thread.join()


def test_a_put_that_is_given_up_ends_with_its_batch_also_where_the_stream_takes_everything() -> None:
    class Willing(FullStream):
        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            writer.give_up()
            return super().put_records(StreamName, Records)

    stream, left = Willing(every=1), [record(i) for i in range(MAX_RECORDS + 1)]
    writer = StreamWriter(stream, "s")  # type: ignore[arg-type]
    with pytest.raises(StreamUnavailableError, match="given up"):
        writer.put(left)
    assert (stream.calls, left) == (1, [record(MAX_RECORDS)])


def test_records_arrive_on_the_shards_that_their_hash_keys_name(kinesis: Any) -> None:
    name = unique("writer")
    kinesis.create_stream(StreamName=name, ShardCount=2)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    put_all(kinesis, name, [record(i) for i in range(1001)])
    got = []
    for shard in kinesis.list_shards(StreamName=name)["Shards"]:
        position = {"StreamName": name, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = kinesis.get_shard_iterator(**position)["ShardIterator"]
        got.append([r["Data"] for r in kinesis.get_records(ShardIterator=iterator)["Records"]])
    assert got == [[record(i).data for i in range(start, 1001, 2)] for start in (0, 1)]


def test_a_stream_that_does_not_exist_is_reported_at_once(kinesis: Any) -> None:
    with pytest.raises(StreamError, match="stream 'nowhere' does not exist"):
        put_all(kinesis, "nowhere", [record(1)])
