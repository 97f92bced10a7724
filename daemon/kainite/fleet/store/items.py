"""The records as text: one JSON object each. Absent fields have their defaults; unknown ones are kept.

So are words that this release does not know where it has a list of them: a status or a restart policy of a later
release reads as ``unknown``, and is written back as it was.

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
from enum import StrEnum
from typing import Any, TypeVar

import orjson

from kainite.base.clock import epoch_ms
from kainite.fleet.model.records import Duty, Event, Lead, Message, Picture, Record, Restart, Subject, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus

E = TypeVar("E", bound=StrEnum)

LEAD = "lead"
UNKNOWN = "unknown"
"""Stands for a word of a later release."""


def key_of(record: Record) -> str:
    """Returns the key of a record."""
    match record:
        case Lead():
            return LEAD
        case Worker():
            return f"worker/{record.name}"
        case Duty():
            return f"duty/{record.name}"
        case Message():
            return f"message/{record.worker}/{record.number:012d}"


def text_of(record: Record | Event) -> str:
    """Returns a record without its version."""
    fields = dataclasses.asdict(record)
    fields.pop("version", None)
    return orjson.dumps(_with_extra(fields, fields.pop("extra", {}))).decode()


def later_word(record: Worker | Duty) -> str:
    """Returns the status of a record as its writer had it."""
    return str(record.extra.get("status", record.status) if record.status == UNKNOWN else record.status)


def record_of(key: str, version: str, text: str) -> Record | None:
    """Returns the record of a key; None for a kind that this release does not know.

    Raises:
        ValueError: the text is none of this kind's.
    """
    kind, _, _ = key.partition("/")
    fields: dict[str, Any] = orjson.loads(text)
    match kind:
        case "lead":
            return Lead(**_known(Lead, fields), version=version)
        case "worker":
            extra = _extra(Worker, fields)
            fields["status"] = _word(WorkerStatus, "status", fields, extra)
            return Worker(**_known(Worker, fields), version=version, extra=extra)
        case "duty":
            return _duty(fields, version)
        case "message":
            return Message(**_known(Message, fields), version=version)
    return None


def stamped(event: Event) -> Event:
    """Returns a line of a history with the time of this host, if it has none yet."""
    return event if event.at else dataclasses.replace(event, at=epoch_ms())


def event_of(text: str) -> Event:
    """Returns a line of a history."""
    fields: dict[str, Any] = orjson.loads(text)
    fields["subject"] = Subject(fields["subject"])
    return Event(**_known(Event, fields))


def picture_of(records: Iterable[Record]) -> Picture:
    """Returns what these records show together."""
    workers: dict[str, Worker] = {}
    duties: dict[str, Duty] = {}
    messages: list[Message] = []
    lead: Lead | None = None
    for record in records:
        match record:
            case Worker():
                workers[record.name] = record
            case Duty():
                duties[record.name] = record
            case Message():
                messages.append(record)
            case Lead():
                lead = record
    return Picture(workers, duties, lead, tuple(sorted(messages, key=lambda message: (message.number, message.worker))))


def _duty(fields: dict[str, Any], version: str) -> Duty:
    # A number that JSON does not have (infinity) stands there as null.
    work: dict[str, Any] = {name: value for name, value in fields["work"].items() if value is not None}
    extra, more = _extra(Duty, fields), _extra(Work, work)
    work["restart"] = _word(Restart, "restart", {"restart": Restart.ALWAYS, **work}, more)
    fields["status"] = _word(DutyStatus, "status", fields, extra)
    known = {**_known(Duty, fields), "work": Work(**_known(Work, work))}
    return Duty(**known, version=version, extra=extra | ({"work": more} if more else {}))


def _word(words: type[E], name: str, fields: Mapping[str, Any], extra: dict[str, Any]) -> E:
    """Returns the word of a list that stands in a field; one that is not in the list is kept beside."""
    try:
        return words(fields[name])
    except ValueError:
        extra[name] = fields[name]
        return words(UNKNOWN)


def _with_extra(fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields as a record has them, with what a later release has written."""
    whole: dict[str, Any] = {**extra, **fields}
    for name in fields.keys() & extra.keys():
        if isinstance(extra[name], Mapping):
            whole[name] = _with_extra(fields[name], extra[name])
        elif fields[name] == UNKNOWN:
            whole[name] = extra[name]
    return whole


def _known(record: type[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(record)} - {"version", "extra"}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items() if name in names}


def _extra(record: type[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(record)}
    return {name: value for name, value in fields.items() if name not in names}
