"""A batch of Kinesis records as the ``json-lines`` dialect gets it: the ``processRecords`` line, made once. Pure.

A batch is read ahead of its child and kept as the finished line (:mod:`kainite.kinesis.read.record_batch`).
The payload's base64 is not decoded: the string of Kinesis's reply is the string of the line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from kainite.base.record import RawRecord, arrival_ms


def render_process_records(records: Sequence[RawRecord], millis_behind_latest: int | None) -> bytes:
    """Returns the ``processRecords`` line (docs/kcl.md, *Multi-language protocol*).

    ASCII only: a raw U+2028 ends a line for Node's readline.
    """
    request = {
        "action": "processRecords",
        "records": [
            {
                "data": record.get("Data"),
                "partitionKey": record["PartitionKey"],
                "sequenceNumber": record["SequenceNumber"],
                "approximateArrivalTimestamp": arrival_ms(record),
                "subSequenceNumber": record.get("SubSequenceNumber", 0),
                "action": "record",
            }
            for record in records
        ],
        "millisBehindLatest": millis_behind_latest,
    }
    return _line(request)


def render_process_records_v0(records: Sequence[RawRecord], millis_behind_latest: int | None) -> bytes:
    """Returns the line in the protocol's first form, which knows neither times nor aggregates."""
    return _line(
        {
            "action": "processRecords",
            "records": [
                {
                    "data": record.get("Data"),
                    "partitionKey": record["PartitionKey"],
                    "sequenceNumber": record["SequenceNumber"],
                }
                for record in records
            ],
        }
    )


def _line(request: dict[str, Any]) -> bytes:
    line = orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE)
    return line if line.isascii() else json.dumps(request, separators=(",", ":")).encode() + b"\n"
