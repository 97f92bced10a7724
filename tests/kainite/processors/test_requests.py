"""Which requests are decoded in the library's place, and what the library reads between them."""

from __future__ import annotations

import base64
import io
from typing import Any

import msgspec
import pytest
from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor

from kainite.base.record import RawRecord
from kainite.child.json_lines.records import render_process_records
from kainite.processors.requests import DeliveredRecord, Requests

STATUS = b'\n{"action":"status","responseFor":"processRecords"}\n'
INITIALIZE = b'{"action":"initialize","shardId":"shardId-0","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}\n'


def batch(*payloads: bytes) -> bytes:
    """Returns a batch as a daemon writes it."""
    records = [
        RawRecord(str(2**100 + place), "kä", base64.b64encode(payload).decode(), 1_700_000_000.125)
        for place, payload in enumerate(payloads)
    ]
    return b"".join(render_process_records(records, 0))


class _Processor(processor.RecordProcessorBase):  # type: ignore[misc]  # kclpy is not typed
    """Notes what the library hands over."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def initialize(self, initialize_input: Any) -> None:
        self.found.append(initialize_input.shard_id)

    def process_records(self, process_records_input: Any) -> None:
        self.found.append([one.binary_data for one in process_records_input.records])

    def lease_lost(self, lease_lost_input: Any) -> None: ...

    def shard_ended(self, shard_ended_input: Any) -> None: ...

    def shutdown_requested(self, shutdown_requested_input: Any) -> None: ...


def test_a_batch_is_decoded_with_all_that_a_record_has() -> None:
    taken: list[list[DeliveredRecord]] = []
    answers = io.BytesIO()

    assert Requests(io.BytesIO(batch(b"\0\xff", b"") + INITIALIZE), answers, taken.append).readline().encode() == (
        INITIALIZE
    )

    assert taken == [
        [
            DeliveredRecord(b"\0\xff", "kä", str(2**100), 0, 1_700_000_000_125),
            DeliveredRecord(b"", "kä", str(2**100 + 1), 0, 1_700_000_000_125),
        ]
    ]
    assert answers.getvalue() == STATUS


def test_the_library_gets_every_other_line_and_may_read_within_a_batch() -> None:
    reply = b'{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":null}\n'
    strange = b'{ "action": "processRecords", "records": [], "millisBehindLatest": 0 }\n'
    lines = io.BytesIO(INITIALIZE + batch(b"1") + reply + strange + batch(b"2", b"3") + reply)
    answers, one = io.BytesIO(), _Processor()

    def process(records: list[DeliveredRecord]) -> None:
        one.found.append([record.binary_data for record in records])
        conversation.checkpointer.checkpoint()

    requests = Requests(lines, answers, process)
    conversation = kcl.KCLProcess(one, requests, io.TextIOWrapper(answers, write_through=True))
    conversation.run()

    assert one.found == ["shardId-0", [b"1"], [], [b"2", b"3"]]
    said = [msgspec.json.decode(line) for line in answers.getvalue().splitlines() if line]
    assert [line["action"] for line in said] == ["status", "checkpoint", "status", "status", "checkpoint", "status"]
    assert {line["responseFor"] for line in said if line["action"] == "status"} == {"initialize", "processRecords"}


@pytest.mark.parametrize(
    "line", [b'{"action":"processRecords","records":[{}]}\n', b'{"action":"processRecords","records":[\n']
)
def test_a_batch_that_cannot_be_read_is_not_answered(line: bytes) -> None:
    answers = io.BytesIO()
    with pytest.raises(msgspec.DecodeError):
        Requests(io.BytesIO(line), answers, lambda records: None).readline()
    assert answers.getvalue() == b""
