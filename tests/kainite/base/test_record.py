"""A record as GetRecords has it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.base.record import PADDING_SAMPLE, RawRecord, arrival_ms, payload_bytes, position_of


@given(st.integers(0, 2**42))
def test_arrival_times_keep_their_milliseconds(millis: int) -> None:
    assert arrival_ms(RawRecord("1", "k", arrived=millis / 1000)) == millis


def test_a_record_without_an_arrival_time_has_none() -> None:
    assert arrival_ms(RawRecord("1", "k")) is None


@pytest.mark.parametrize(
    ("record", "position"),
    [
        (RawRecord("17", "k"), Position(17)),
        (RawRecord("17", "k", sub=3), Position(17, 3)),
        (RawRecord("1" + "0" * 60, "k"), Position(10**60)),
    ],
)
def test_a_records_place_is_its_sequence_number_and_its_place_in_an_aggregate(
    record: RawRecord, position: Position
) -> None:
    assert position_of(record) == position


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_the_size_of_payloads_is_known_without_decoding_them(payloads: list[bytes]) -> None:
    records = [RawRecord("1", "k", base64.b64encode(payload).decode()) for payload in payloads]
    assert payload_bytes([*records, RawRecord("1", "k")]) == sum(map(len, payloads))


@pytest.mark.parametrize("lengths", [(5,), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("count", [200, 201, 1999, 10_000])
def test_the_size_of_many_payloads_is_computed_from_a_sample_of_their_padding(
    lengths: tuple[int, ...], count: int
) -> None:
    payloads = [bytes(lengths[number % len(lengths)]) for number in range(count)]
    records = [RawRecord("1", "k", base64.b64encode(payload).decode()) for payload in payloads]
    error = payload_bytes(records) - sum(map(len, payloads))
    assert abs(error) <= (0 if count <= PADDING_SAMPLE or len(lengths) == 1 else 2 * count)
