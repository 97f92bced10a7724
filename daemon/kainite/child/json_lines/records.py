"""A batch of Kinesis records as the ``json-lines`` dialect gets it: the ``processRecords`` line, made once. Pure.

A batch is read ahead of its child and kept as the finished line (:mod:`kainite.kinesis.read.record_batch`).
The payload's base64 is not decoded: the string of Kinesis's reply is the string of the line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

import orjson

from kainite.base.record import Pieces, RawRecord, arrival_ms, rounded_ms

CHUNK: Final = 250
"""Records that are made into text together: more leave the processor's cache, and take half as much time again."""

_BEGIN: Final = b'{"action":"processRecords","records":[{"data":"'
_NEXT, _KEY, _SEQUENCE = ',{"data":"', '","partitionKey":"', '","sequenceNumber":"'


def render_process_records(
    records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False
) -> Pieces:
    """Returns the ``processRecords`` line, in pieces (docs/kcl.md, *Multi-language protocol*).

    ASCII only: a raw U+2028 ends a line for Node's readline.

    Args:
        records: the records.
        millis_behind_latest: how far they are behind the shard's end, milliseconds.
        plain: whether every text of the records is ASCII and needs no escape: then the texts are copied, which takes a
            third of the time of making an object of each record and of writing it.
    """
    if not plain or not records:
        return (_rendered(records, millis_behind_latest),)
    try:
        chunks = [_copied(records[begin : begin + CHUNK]) for begin in range(0, len(records), CHUNK)]
    except TypeError:  # a record without data
        return (_rendered(records, millis_behind_latest),)
    chunks[-1] = chunks[-1].removesuffix(_NEXT.encode())
    return (_BEGIN, *chunks, b'],"millisBehindLatest":%b}\n' % orjson.dumps(millis_behind_latest))


def _copied(records: Sequence[RawRecord]) -> bytes:
    """Returns records as the line has them, from one's payload up to where the next one's payload would begin.

    Raises:
        TypeError: a record has no data.
    """
    seconds = [record.arrived for record in records]
    ends = {one: _end(one) for one in set(seconds)}
    pieces: list[str | None] = ["", _KEY, "", _SEQUENCE, "", ""] * len(records)
    pieces[0::6] = [record.data for record in records]
    pieces[2::6] = [record.key for record in records]
    pieces[4::6] = [record.sequence for record in records]
    pieces[5::6] = [ends[one] for one in seconds]
    return "".join(cast("list[str]", pieces)).encode()


def _end(seconds: float | None) -> str:
    """Returns what stands between a sequence number and the next record's payload."""
    arrived = rounded_ms(seconds)
    shown = "null" if arrived is None else arrived
    return f'","approximateArrivalTimestamp":{shown},"subSequenceNumber":0,"action":"record"}}{_NEXT}'


def _rendered(records: Sequence[RawRecord], millis_behind_latest: int | None) -> bytes:
    request = {
        "action": "processRecords",
        "records": [
            {
                "data": record.data,
                "partitionKey": record.key,
                "sequenceNumber": record.sequence,
                "approximateArrivalTimestamp": arrival_ms(record),
                "subSequenceNumber": record.sub or 0,
                "action": "record",
            }
            for record in records
        ],
        "millisBehindLatest": millis_behind_latest,
    }
    return _line(request)


def render_process_records_v0(
    records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False
) -> Pieces:
    """Returns the line in the protocol's first form, which knows neither times nor aggregates."""
    request = {
        "action": "processRecords",
        "records": [
            {
                "data": record.data,
                "partitionKey": record.key,
                "sequenceNumber": record.sequence,
            }
            for record in records
        ],
    }
    return (_line(request),)


def _line(request: dict[str, Any]) -> bytes:
    line = orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE)
    return line if line.isascii() else json.dumps(request, separators=(",", ":")).encode() + b"\n"
