from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.contract import LogHead, Slot
from kainite.store.dynamodb_items import (
    chunk_key,
    head_fields,
    head_from,
    id_key,
    key,
    query_arguments,
    slot_fields,
    slot_from,
)

IDS = st.integers(0, 10**20 - 1)
COUNTS = st.integers(0, 2**53)


@pytest.mark.parametrize(
    ("first", "last", "condition"),
    [
        (None, None, "p = :p"),
        ("1", None, "p = :p AND s >= :first"),
        (None, "9", "p = :p AND s <= :last"),
        ("1", "9", "p = :p AND s BETWEEN :first AND :last"),
    ],
)
def test_a_query_names_the_ends_that_it_has_and_no_others(first: str | None, last: str | None, condition: str) -> None:
    ends: dict[str, Any] = {":first": first, ":last": last}
    assert query_arguments("0/slots", first, last) == {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {
            ":p": {"S": "0/slots"},
            **{name: {"S": end} for name, end in ends.items() if end is not None},
        },
    }


@given(IDS, IDS)
def test_range_keys_are_ordered_as_transaction_ids(one: int, other: int) -> None:
    assert (id_key(one) < id_key(other)) == (one < other)
    assert int(id_key(one)) == one


@given(IDS, st.integers(0, 999_998))
def test_the_chunks_of_a_batch_follow_each_other_below_its_id(first_id: int, number: int) -> None:
    chunk = chunk_key(first_id, "n0nce", number)
    assert chunk.startswith(f"{id_key(first_id)}/n0nce/")
    assert chunk < chunk_key(first_id, "n0nce", number + 1)


def test_a_key_has_two_strings() -> None:
    assert key("0", "HEAD") == {"p": {"S": "0"}, "s": {"S": "HEAD"}}


@given(IDS, COUNTS, COUNTS, st.text(min_size=1))
def test_a_slot_reads_back_as_it_is_written(start: int, generation: int, count: int, nonce: str) -> None:
    item = key("0", id_key(start)) | slot_fields(generation, count, nonce)
    assert slot_from(item) == Slot(start, generation, count, nonce)


@given(
    st.builds(
        LogHead,
        generation=COUNTS,
        owner=st.text(),
        version=st.text(),
        lease_ms=COUNTS,
        released=st.booleans(),
        high_water_mark=st.integers(-1, 10**15),
        low_water_mark=COUNTS,
        snapshot=st.integers(-1, 10**15),
        process=st.text(),
        address=st.text(),
        token=st.text(),
        summary=st.text(),
    )
)
def test_a_head_reads_back_as_it_is_written(head: LogHead) -> None:
    fields = head_fields(head)
    assert head_from(fields) == head
    texts = (head.process, head.address, head.token, head.summary)
    assert len(fields) == len(dataclasses.fields(LogHead)) - sum(not text for text in texts)


def test_the_heads_attributes_and_their_types_are_the_format() -> None:
    head = LogHead(3, "w", "v1", 12_000, released=True, high_water_mark=9, snapshot=4)
    fields = {
        "g": {"N": "3"}, "o": {"S": "w"}, "v": {"S": "v1"}, "t": {"N": "12000"}, "r": {"BOOL": True},
        "hwm": {"N": "9"}, "lwm": {"N": "0"}, "snap": {"N": "4"},
    }  # fmt: skip
    assert head_fields(head) == fields  # as before heads had a process
    assert head_fields(replace(head, process="host/1")) == fields | {"w": {"S": "host/1"}}
    assert head_fields(replace(head, address="host:1")) == fields | {"a": {"S": "host:1"}}
    assert head_fields(replace(head, token="t")) == fields | {"k": {"S": "t"}}
    assert head_fields(replace(head, summary="[1]")) == fields | {"f": {"S": "[1]"}}
