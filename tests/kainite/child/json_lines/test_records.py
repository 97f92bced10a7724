"""The line that hands records to a child of the json-lines dialect."""

from __future__ import annotations

import base64
import json
from unittest.mock import patch

import msgspec
import pytest
from amazon_kclpy.dispatch import message_decode
from amazon_kclpy.messages import ProcessRecordsInput
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kainite.base.record import RawRecord, arrival_ms
from kainite.child.json_lines import records
from kainite.child.json_lines.records import render_process_records, render_process_records_v0
from kainite.kinesis.client import parse_reply


def record(sequence: int, data: str | None = "YWJj", key: str = "k", at: float | None = 1.5) -> RawRecord:
    return RawRecord(str(sequence), key, data, at)


def test_the_line_is_kcls_to_the_byte() -> None:
    line = b"".join(render_process_records([record(7, at=1795255169.212), record(8, data="", key='a"b')], 12))
    assert line == (
        b'{"action":"processRecords","records":['
        b'{"data":"YWJj","partitionKey":"k","sequenceNumber":"7","approximateArrivalTimestamp":1795255169212,'
        b'"subSequenceNumber":0,"action":"record"},'
        b'{"data":"","partitionKey":"a\\"b","sequenceNumber":"8","approximateArrivalTimestamp":1500,'
        b'"subSequenceNumber":0,"action":"record"}],"millisBehindLatest":12}\n'
    )


def test_nulls_are_written() -> None:
    line = json.loads(b"".join(render_process_records([record(7, data=None, at=None)], None)))
    assert line["millisBehindLatest"] is None
    assert line["records"][0]["data"] is None
    assert line["records"][0]["approximateArrivalTimestamp"] is None


_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(
    ["k", "", "a\x7f", '"']
)
_RECORD = st.builds(
    record,
    st.integers(0, 10**60),
    data=st.sampled_from(["YWJj", "", "84maww==", None]) | _TEXT,
    key=_TEXT,
    at=st.none() | st.integers(0, 2 * 10**9) | st.floats(0, 2e9),
)


_BEHIND = st.none() | st.integers(0, 10**12)


@given(st.lists(_RECORD | _RECORD.map(lambda record: structs.replace(record, sub=7)), max_size=5), _BEHIND)
def test_the_line_has_each_record(given_: list[RawRecord], behind: int | None) -> None:
    line = b"".join(render_process_records(given_, behind))
    request = {
        "action": "processRecords",
        "records": [
            {
                "data": one.data,
                "partitionKey": one.key,
                "sequenceNumber": one.sequence,
                "approximateArrivalTimestamp": arrival_ms(one),
                "subSequenceNumber": one.sub or 0,
                "action": "record",
            }
            for one in given_
        ],
        "millisBehindLatest": behind,
    }
    raw = json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    assert line == raw if raw.isascii() else json.loads(line) == request and line.isascii()


@given(st.lists(_RECORD, max_size=5), _BEHIND, st.booleans())
def test_texts_that_are_copied_from_a_reply_give_the_line_that_is_written(
    given_: list[RawRecord], behind: int | None, escaped: bool
) -> None:
    body = json.dumps({"Records": [msgspec.to_builtins(one) for one in given_]}, ensure_ascii=escaped).encode()
    reply = parse_reply(body)
    with patch.object(records, "CHUNK", 2):
        line = b"".join(render_process_records(reply.records, behind, plain=reply.plain))
    assert line == b"".join(render_process_records(given_, behind))


def test_records_of_a_plain_reply_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [str(number) for number in range(2 * records.CHUNK + 1)]
    body = msgspec.json.encode({"Records": [record(number) for number in range(2 * records.CHUNK + 1)]})
    monkeypatch.setattr(records, "_rendered", None)
    reply = parse_reply(body)
    line = b"".join(render_process_records(reply.records, 0, plain=reply.plain))
    assert [one["sequenceNumber"] for one in json.loads(line)["records"]] == expected


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_partition_key_makes_one_ascii_line(key: str) -> None:
    line = b"".join(render_process_records([record(7, key=key)], 0))
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["records"][0]["partitionKey"] == key


def test_the_first_protocols_line_has_only_what_it_knows() -> None:
    line = b"".join(render_process_records_v0([record(7), record(8, data="", key="é")], 12))
    assert line == (
        b'{"action":"processRecords","records":['
        b'{"data":"YWJj","partitionKey":"k","sequenceNumber":"7"},'
        b'{"data":"","partitionKey":"\\u00e9","sequenceNumber":"8"}]}\n'
    )


@pytest.mark.parametrize("data", [bytes([n]) * 3 for n in (0, 10, 34, 127, 128, 255)])
def test_the_kinesis_client_library_for_python_reads_the_line(data: bytes) -> None:
    line = b"".join(render_process_records([record(7, data=base64.b64encode(data).decode(), key="é")], 3))
    message = json.loads(line, object_hook=message_decode)
    assert isinstance(message, ProcessRecordsInput)
    assert message.millis_behind_latest == 3
    assert message.records[0].binary_data == data
    assert message.records[0].partition_key == "é"
