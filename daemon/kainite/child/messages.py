r"""The messages of KCL's multi-language protocol, one JSON object a line.

What the daemon writes is byte for byte what KCL 2.x and 3.x write (reference/kcl_multilang.md §1),
but for characters beyond ASCII, which are escaped: Node's line reader splits at U+2028.

What a child writes is read as leniently as KCL's ``GetNextMessageTask`` reads it: any order of keys,
the last of two equal keys, blanks around, anything after the object, numbers and strings for each
other. Everything else is junk, which a child may write between messages as it likes. Two additions:
``emit`` lines are handed on unread, and a broken line that seems to be one is handed on too, since
its unit must fail rather than vanish.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, NoReturn, TypeAlias

_EMIT_START = re.compile(rb'\s*\{\s*"action"\s*:\s*"emit"\s*[,}]')
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_LONG = range(-(2**63), 2**63)
_LONG_DIGITS = 20


class Action(StrEnum):
    """What the daemon asks of a child; each is answered by one ``status``."""

    INITIALIZE = "initialize"
    PROCESS_RECORDS = "processRecords"
    LEASE_LOST = "leaseLost"
    SHARD_ENDED = "shardEnded"
    SHUTDOWN_REQUESTED = "shutdownRequested"


@dataclass(frozen=True, slots=True)
class Status:
    """``status``: an action is done. ``response_for`` is None when the child did not say which."""

    response_for: str | None


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """``checkpoint``: sequence number and sub-sequence number as the child wrote them, or None."""

    sequence: str | None
    sub: int | None = None


@dataclass(frozen=True, slots=True)
class Emitted:
    """An ``emit`` line, or a broken line that seems to be one; not parsed."""

    line: bytes


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that is no message."""

    text: str


Message: TypeAlias = Status | CheckpointRequested | Emitted | SkippedLine


class _UnreadableError(ValueError):
    """The line is no message of the protocol."""


def parse(line: bytes) -> Message | None:
    """Read one line of a child's output; None for a blank one. Never raises."""
    if not line or line.isspace():
        return None
    if _EMIT_START.match(line):
        return Emitted(line)
    try:
        return _message(_object(line), line)
    except (ValueError, RecursionError):
        return Emitted(line) if _seems_emit(line) else SkippedLine(line.decode("utf-8", "replace"))


def initialize_line(shard_id: str, sequence: str | None, sub: int | None) -> bytes:
    """``initialize``: ``sequence`` is a sequence number or KCL's sentinel (``TRIM_HORIZON`` …)."""
    return _line({"action": "initialize", "shardId": shard_id, "sequenceNumber": sequence, "subSequenceNumber": sub})


def reply_line(request: CheckpointRequested, error: str | None) -> bytes:
    """The answer to a checkpoint request; ``error`` is the simple name of one of KCL's exceptions."""
    echo = {"sequenceNumber": request.sequence, "subSequenceNumber": request.sub}
    return _line({"action": "checkpoint", **echo, "error": error})


def bare_line(action: Action) -> bytes:
    """An action without arguments: ``leaseLost``, ``shardEnded``, ``shutdownRequested``."""
    return _line({"action": action.value})


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def _no_constant(name: str) -> NoReturn:
    raise _UnreadableError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


def _object(line: bytes) -> dict[str, Any]:
    value, _ = _decoder.raw_decode(line.decode("utf-8", "replace").strip())
    if not isinstance(value, dict):
        raise _UnreadableError("no object")
    return value


def _message(fields: dict[str, Any], line: bytes) -> Message:
    match fields.pop("action", None):
        case "emit":
            return Emitted(line)
        case "status":
            _only(fields, {"responseFor"})
            return Status(_text(fields.get("responseFor")))
        case "checkpoint":
            _only(fields, {"sequenceNumber", "subSequenceNumber", "error"})
            return CheckpointRequested(_text(fields.get("sequenceNumber")), _long(fields.get("subSequenceNumber")))
        case _:
            raise _UnreadableError("no action of a child")


def _only(fields: Mapping[str, Any], known: set[str]) -> None:
    if not fields.keys() <= known:
        raise _UnreadableError("unknown property")


def _text(value: object) -> str | None:
    """Jackson's way to a string: any scalar will do."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    raise _UnreadableError("no text")


def _long(value: object) -> int | None:
    """Jackson's way to a Long: fractions are cut off, strings may hold a whole number."""
    match value:
        case None:
            return None
        case bool():
            raise _UnreadableError("no number")
        case int():
            number = value
        case Decimal():
            number = int(value) if value.adjusted() < _LONG_DIGITS else _LONG.stop
        case str() if value.strip() in ("", "null"):
            return None
        case str() if _WHOLE_NUMBER.fullmatch(value.strip()):
            number = int(value)
        case _:
            raise _UnreadableError("no number")
    if number not in _LONG:
        raise _UnreadableError("no number of 64 bits")
    return number


def _seems_emit(line: bytes) -> bool:
    return b'"action"' in line and b'"emit"' in line
