from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from amazon_kclpy.dispatch import message_decode
from amazon_kclpy.messages import ProcessRecordsInput
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.base.record import arrival_ms
from kainite.kinesis.read.batch import make_batches, render_process_records, render_process_records_v0
from support import kpl


def record(sequence: int, data: str | None = "YWJj", key: str = "k", at: float | None = 1.5) -> dict[str, Any]:
    return {"SequenceNumber": str(sequence), "Data": data, "PartitionKey": key, "ApproximateArrivalTimestamp": at}


def test_the_line_is_kcls_to_the_byte() -> None:
    line = render_process_records([record(7, at=1795255169.212), record(8, data="", key='a"b')], 12)
    assert line == (
        b'{"action":"processRecords","records":['
        b'{"data":"YWJj","partitionKey":"k","sequenceNumber":"7","approximateArrivalTimestamp":1795255169212,'
        b'"subSequenceNumber":0,"action":"record"},'
        b'{"data":"","partitionKey":"a\\"b","sequenceNumber":"8","approximateArrivalTimestamp":1500,'
        b'"subSequenceNumber":0,"action":"record"}],"millisBehindLatest":12}\n'
    )


def test_nulls_are_written() -> None:
    line = json.loads(render_process_records([record(7, data=None, at=None)], None))
    assert line["millisBehindLatest"] is None
    assert line["records"][0]["data"] is None
    assert line["records"][0]["approximateArrivalTimestamp"] is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_partition_key_makes_one_ascii_line(key: str) -> None:
    line = render_process_records([record(7, key=key)], 0)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["records"][0]["partitionKey"] == key


@given(st.integers(0, 2**42))
def test_arrival_times_keep_their_milliseconds(millis: int) -> None:
    assert arrival_ms(record(1, at=millis / 1000)) == millis


@given(
    st.lists(st.integers(1, 60), unique=True, max_size=30).map(sorted),
    st.none() | st.builds(Position, st.integers(0, 61), st.integers(0, 3)),
    st.none() | st.builds(Position, st.integers(0, 61), st.integers(0, 3)),
)
def test_batches_hold_what_follows_the_start_and_never_straddle_the_cut(
    sequences: list[int], after: Position | None, cut_at: Position | None
) -> None:
    batches = make_batches([record(sequence) for sequence in sequences], 5, after=after, cut_at=cut_at)
    given_out = [int(r["sequenceNumber"]) for batch in batches for r in json.loads(batch.line)["records"]]
    assert given_out == [s for s in sequences if after is None or Position(s) > after]
    for batch in batches:
        assert batch.first is not None
        assert batch.last is not None
        assert 0 < batch.count == len(json.loads(batch.line)["records"])
        assert cut_at is None or (batch.first <= cut_at) == (batch.last <= cut_at)
        assert (batch.millis_behind_latest, batch.arrival_ms) == (5, 1500)
    assert len(batches) <= 2


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), unique_by=lambda one: one[0], max_size=15).map(sorted),
    st.none() | st.builds(Position, st.integers(0, 41), st.integers(0, 7)),
    st.none() | st.builds(Position, st.integers(0, 41), st.integers(0, 7)),
)
def test_batches_start_and_are_cut_inside_aggregates(
    sizes: list[tuple[int, int]], after: Position | None, cut_at: Position | None
) -> None:
    # Size 0 is a plain record here.
    records = [record(sequence, data=aggregate(size) if size else "YWJj") for sequence, size in sizes]
    batches = make_batches(records, 5, after=after, cut_at=cut_at)
    found = [[place(r) for r in json.loads(batch.line)["records"]] for batch in batches]
    every = [Position(sequence, sub) for sequence, size in sizes for sub in range(size or 1)]
    assert [position for positions in found for position in positions] == [p for p in every if not after or p > after]
    for batch, positions in zip(batches, found, strict=True):
        assert (batch.first, batch.last, batch.count) == (positions[0], positions[-1], len(positions))
        assert cut_at is None or (positions[0] <= cut_at) == (positions[-1] <= cut_at)


def aggregate(size: int) -> str:
    return base64.b64encode(kpl.aggregate([kpl.User(b"x")] * size)).decode()


def place(given_out: dict[str, Any]) -> Position:
    return Position(int(given_out["sequenceNumber"]), given_out["subSequenceNumber"])


def test_the_first_protocols_line_has_only_what_it_knows() -> None:
    line = render_process_records_v0([record(7), record(8, data="", key="é")], 12)
    assert line == (
        b'{"action":"processRecords","records":['
        b'{"data":"YWJj","partitionKey":"k","sequenceNumber":"7"},'
        b'{"data":"","partitionKey":"\\u00e9","sequenceNumber":"8"}]}\n'
    )


@pytest.mark.parametrize("data", [bytes([n]) * 3 for n in (0, 10, 34, 127, 128, 255)])
def test_the_kinesis_client_library_for_python_reads_the_line(data: bytes) -> None:
    line = render_process_records([record(7, data=base64.b64encode(data).decode(), key="é")], 3)
    message = json.loads(line, object_hook=message_decode)
    assert isinstance(message, ProcessRecordsInput)
    assert message.millis_behind_latest == 3
    assert message.records[0].binary_data == data
    assert message.records[0].partition_key == "é"
