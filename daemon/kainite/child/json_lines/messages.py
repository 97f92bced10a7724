r"""The messages of KCL's multi-language protocol, one JSON object a line (docs/kcl.md, *Multi-language protocol*).

The daemon writes byte for byte what KCL 2.x and 3.x write, except that characters beyond ASCII are escaped: Node's line
reader splits at U+2028.

A child's line is read as leniently as KCL's ``GetNextMessageTask`` reads it: any order of keys, the last of two equal
keys, blanks around the object, anything after it, numbers in place of strings and strings in place of numbers. Every
other line is junk, which a child may write between messages. Kainite adds two rules: an ``emit`` line is handed on
unread, and so is a broken line that seems to be one, because its unit must fail rather than vanish.

The protocol's first form differs in a few names only (docs/protocol.md, *The first form*): a :class:`Spelling` holds
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn, TypeAlias

from kainite.base.shard_key import ShardKey
from kainite.child.events import Action, CheckpointRequested, Emitted, SkippedLine

_EMIT_START = re.compile(rb'\s*\{\s*"action"\s*:\s*"emit"\s*[,}]')
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_LONG = range(-(2**63), 2**63)
_LONG_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Spelling:
    """The names in which the protocol's forms differ.

    Attributes:
        names: each action's name, in the request and in its status; an action without a name is not in the form.
        reasons: the ``reason`` that is sent with an action.
        sequence, sub: a checkpoint's fields; ``sub`` is None where the form has no sub-sequence numbers.
        tells_start: whether ``initialize`` says where reading begins.
    """

    names: Mapping[Action, str]
    reasons: Mapping[Action, str]
    sequence: str
    sub: str | None
    tells_start: bool


KCL: Final = Spelling({action: action.value for action in Action}, {}, "sequenceNumber", "subSequenceNumber", True)
"""KCL 2.x and 3.x."""

V0: Final = Spelling(
    {
        Action.INITIALIZE: "initialize",
        Action.PROCESS_RECORDS: "processRecords",
        Action.LEASE_LOST: "shutdown",
        Action.SHARD_ENDED: "shutdown",
    },
    {Action.LEASE_LOST: "ZOMBIE", Action.SHARD_ENDED: "TERMINATE"},
    sequence="checkpoint",
    sub=None,
    tells_start=False,
)
"""The first form, ``json-lines-v0``."""


@dataclass(frozen=True, slots=True)
class Status:
    """``status``: the child has done an action; ``response_for`` is None when the child did not name it."""

    response_for: str | None


Message: TypeAlias = Status | CheckpointRequested | Emitted | SkippedLine


class _UnreadableError(ValueError):
    """The line is no message of the protocol."""


def parse(line: bytes, spelling: Spelling = KCL) -> Message | None:
    """Reads one line of a child's output; returns None for a blank one. Never raises."""
    if not line or line.isspace():
        return None
    if _EMIT_START.match(line):
        return Emitted(line)
    try:
        return _message(_object(line), line, spelling)
    except (ValueError, RecursionError):
        return Emitted(line) if _seems_emit(line) else SkippedLine(line.decode("utf-8", "replace"))


def initialize_line(shard_id: str, sequence: str | None, sub: int | None, spelling: Spelling = KCL) -> bytes:
    """Renders ``initialize``; ``sequence`` is a sequence number or KCL's sentinel (``TRIM_HORIZON`` …).

    Where an application reads several streams, the child is told which one its shard is of, beside the shard's id. KCL
    has no such field in its MultiLangDaemon, which reads one stream; in Java the same text is ``streamIdentifier``.
    """
    start = _place(sequence, sub, spelling) if spelling.tells_start else {}
    key = ShardKey.of(shard_id)
    stream = {"streamIdentifier": key.stream} if key.stream else {}
    return _line({"action": "initialize", "shardId": key.shard_id, **start, **stream})


def reply_line(request: CheckpointRequested, error: str | None, spelling: Spelling = KCL) -> bytes:
    """Renders the reply to a checkpoint request; ``error`` is the simple name of one of KCL's exceptions."""
    return _line({"action": "checkpoint", **_place(request.sequence, request.sub, spelling), "error": error})


def bare_line(action: Action, spelling: Spelling = KCL) -> bytes:
    """Renders an action without arguments except its reason: ``leaseLost``, ``shardEnded``, ``shutdownRequested``."""
    reason = {"reason": spelling.reasons[action]} if action in spelling.reasons else {}
    return _line({"action": spelling.names[action], **reason})


def _place(sequence: str | None, sub: int | None, spelling: Spelling) -> dict[str, Any]:
    return {spelling.sequence: sequence} | ({spelling.sub: sub} if spelling.sub else {})


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def _no_constant(name: str) -> NoReturn:
    raise _UnreadableError(f"{name} is not JSON")


def _decimal(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:
        # An exponent of 19 digits and more: Jackson refuses it too.
        raise _UnreadableError("no number") from None


_decoder = json.JSONDecoder(parse_float=_decimal, parse_constant=_no_constant)


def _object(line: bytes) -> dict[str, Any]:
    value, _ = _decoder.raw_decode(line.decode("utf-8", "replace").strip())
    if not isinstance(value, dict):
        raise _UnreadableError("no object")
    return value


def _message(fields: dict[str, Any], line: bytes, spelling: Spelling) -> Message:
    match fields.pop("action", None):
        case "emit":
            return Emitted(line)
        case "status":
            _only(fields, {"responseFor"})
            return Status(_text(fields.get("responseFor")))
        case "checkpoint":
            _only(fields, {spelling.sequence, "error"} | ({spelling.sub} if spelling.sub else set()))
            sub = _long(fields.get(spelling.sub)) if spelling.sub else None
            return CheckpointRequested(_text(fields.get(spelling.sequence)), sub)
        case _:
            raise _UnreadableError("no action of a child")


def _only(fields: Mapping[str, Any], known: set[str]) -> None:
    if not fields.keys() <= known:
        raise _UnreadableError("unknown property")


def _text(value: object) -> str | None:
    """Reads a string as Jackson does: from any scalar."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    raise _UnreadableError("no text")


def _long(value: object) -> int | None:
    """Reads a Long as Jackson does: cuts fractions off, and accepts a string that holds a whole number."""
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
