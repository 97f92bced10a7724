"""The records as text: one JSON object each. Absent fields have their defaults; unknown ones are kept.

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

import orjson

from kainite.base.clock import epoch_ms
from kainite.duties.model.records import Duty, Event, Lead, Message, Picture, Record, Restart, Subject, Work, Worker
from kainite.duties.model.states import DutyStatus, WorkerStatus

LEAD = "lead"


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
    return orjson.dumps({**fields.pop("extra", {}), **fields}).decode()


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
            fields["status"] = WorkerStatus(fields["status"])
            return Worker(**_known(Worker, fields), version=version, extra=_extra(Worker, fields))
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
    work["restart"] = Restart(work.get("restart", Restart.ALWAYS))
    known = {**_known(Duty, fields), "work": Work(**_known(Work, work)), "status": DutyStatus(fields["status"])}
    return Duty(**known, version=version, extra=_extra(Duty, fields))


def _known(record: type[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(record)} - {"version", "extra"}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items() if name in names}


def _extra(record: type[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(record)}
    return {name: value for name, value in fields.items() if name not in names}
