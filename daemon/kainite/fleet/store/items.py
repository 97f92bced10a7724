"""The records as text: one JSON object each, derived from the records' types.

A field that is absent has its default. What a later release has written and this one does not know is kept, and written
back as it was: a field, and a word where this release has a list of them. A status or a restart policy of a later
release reads as ``unknown``.

========================  =========================================
key                       record
========================  =========================================
``lead``                  the leader's lease
``worker/NAME``           a worker
``duty/NAME``             a duty
``message/WORKER/N``      a message; N has twelve digits
========================  =========================================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kainite.base.clock import epoch_ms
from kainite.base.errors import FleetError
from kainite.fleet.model.records import Duty, HistoryLine, Lead, Picture, Record, Worker, WorkerMessage
from kainite.fleet.model.states import UNKNOWN

LEAD = "lead"
_TYPES: Mapping[str, type[Record]] = {LEAD: Lead, "worker": Worker, "duty": Duty, "message": WorkerMessage}


def key_of(record: Record) -> str:
    """Returns the key of a record."""
    match record:
        case Lead():
            return LEAD
        case Worker():
            return f"worker/{record.name}"
        case Duty():
            return f"duty/{record.name}"
        case WorkerMessage():
            return f"message/{record.worker}/{record.number:012d}"


def text_of(record: Record | HistoryLine) -> str:
    """Returns a record as text, without its version."""
    fields = msgspec.to_builtins(record)
    fields.pop("version", None)
    return msgspec.json.encode(_with_extra(fields, fields.pop("extra", {}))).decode()


def later_word(record: Worker | Duty) -> str:
    """Returns the status of a record as its writer had it."""
    return str(record.extra.get("status", record.status) if record.status == UNKNOWN else record.status)


def record_of(key: str, version: str, text: str) -> Record | None:
    """Returns the record of a key; None for a kind that this release does not know.

    Raises:
        FleetError: the text is none of this kind's.
    """
    found = _TYPES.get(key.partition("/")[0])
    if found is None:
        return None
    try:
        fields: dict[str, Any] = msgspec.json.decode(text, type=dict)
        # A number that JSON does not have (infinity) stands there as null.
        if isinstance(work := fields.get("work"), dict):
            fields["work"] = {name: value for name, value in work.items() if value is not None}
        record: Record = msgspec.convert(fields | {"version": version, "extra": {}}, found)
    except msgspec.MsgspecError as error:
        raise FleetError(f"the fleet table's record {key!r} does not read as written: {error}") from error
    if isinstance(record, Worker | Duty) and (extra := _extra(fields, msgspec.to_builtins(record))):
        return dataclasses.replace(record, extra=extra)
    return record


def stamped(event: HistoryLine) -> HistoryLine:
    """Returns a line of a history with the time of this host, if it has none yet."""
    return event if event.at else dataclasses.replace(event, at=epoch_ms())


def event_of(text: str) -> HistoryLine:
    """Returns the line of a history that a text is.

    Raises:
        FleetError: the text is none.
    """
    try:
        return msgspec.json.decode(text, type=HistoryLine)
    except msgspec.MsgspecError as error:
        raise FleetError(f"a line of the fleet table's histories does not read as written: {error}") from error


def picture_of(records: Iterable[Record]) -> Picture:
    """Returns the picture that these records show together."""
    workers: dict[str, Worker] = {}
    duties: dict[str, Duty] = {}
    messages: list[WorkerMessage] = []
    lead: Lead | None = None
    for record in records:
        match record:
            case Worker():
                workers[record.name] = record
            case Duty():
                duties[record.name] = record
            case WorkerMessage():
                messages.append(record)
            case Lead():
                lead = record
    return Picture(workers, duties, lead, tuple(sorted(messages, key=lambda message: (message.number, message.worker))))


def _extra(stored: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of the item that the record lacks, and the words that the record has as unknown."""
    extra: dict[str, Any] = {}
    for name, value in stored.items():
        if name not in known or (known[name] == UNKNOWN != value):
            extra[name] = value
        elif isinstance(value, Mapping) and (more := _extra(value, known[name])):
            extra[name] = more
    return extra


def _with_extra(fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the item's fields for a record, with the fields that a later release has written."""
    whole: dict[str, Any] = {**extra, **fields}
    for name in fields.keys() & extra.keys():
        if isinstance(extra[name], Mapping):
            whole[name] = _with_extra(fields[name], extra[name])
        elif fields[name] == UNKNOWN:
            whole[name] = extra[name]
    return whole
