"""A snapshot: a folded log as bytes, the data of CONTROL entries.

A snapshot is a JSON document, written and read by this module alone. The CONTROL entry that HEAD names holds the ids of
the CONTROL entries before it that hold the document's bytes, cut into parts, and the id (*since*) below which all
entries add up to the state; other entries may stand between since, the parts and this entry.

A document is made in three steps, none of which keeps the event loop for long: :func:`capture` copies the
state's dictionaries, whose values do not change; :func:`parts` encodes the copy slice by slice, on a thread; the parts
are appended one after another. A crash among them leaves parts that nothing refers to: HEAD still names the snapshot
before, whose entries are not truncated before HEAD names another one.
"""

from __future__ import annotations

import base64
import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import orjson

from kainite.base.errors import LogCorruptError
from kainite.base.position import Position
from kainite.log.format.entry import Fault, UnitStatus
from kainite.log.state.ended_units import EndedUnits
from kainite.log.state.folded import FoldedLog, oldest_needed
from kainite.log.state.number_set import NumberSet
from kainite.log.state.recent_units import RecentUnits, Segment
from kainite.log.state.units import OpenUnit, UnitState, shared_tables
from kainite.uow.delta import UnitKind
from kainite.uow.identity import join_digests, split_digests
from kainite.uow.scheme import Scheme, TableScheme

VERSION = 1

PART_BYTES = 1 << 20
"""Size of a part: far below every limit of a batch, and small enough for one step of anybody."""

SLICE = 500
"""Items that are encoded in one step: a thread that encodes holds the interpreter for no longer than that."""

SORTED = 10_000
"""Sets up to this size are sorted, so that equal states have equal bytes; sorting a larger one takes too long."""

Document: TypeAlias = Mapping[str, Any]
"""A state's fields, on their way to become bytes: nothing in them changes any more."""


def capture(state: FoldedLog) -> Document:
    """Returns a copy of the state that the log's further course does not change; quick, for the event loop."""
    return {
        "version": VERSION,
        "next_id": state.next_id,
        "stream": state.stream,
        "positions": {shard: [str(at.sequence), at.sub] for shard, at in state.positions.items()},
        "open": [unit.copy() for unit in state.open.values()],
        "ready": list(state.ready.items()),
        "units": state.captured_units(),
        "recent": state.recent.tail(),
        "segments": [(segment.key, segment.count, segment.highest) for segment in state.recent.segments],
        "numbers": state.recent.numbers.ranges(),
        "numbers_since": state.recent.numbers.since,
        "forgotten": state.recent.forgotten,
        "names_first": state.recent.first,
        "next_number": state.next_number,
        "through": state.through,
        "answered": list(state.answered),
        "schemes": {name: scheme.tables for name, scheme in state.schemes.items()},
        "ended": list(state.ended.captured()),
        "latest_time": state.latest_time,
        "started_ms": state.started_ms,
    }


def needed_by(document: Document) -> int:
    """Returns the lowest transaction id whose data the captured state may still need."""
    return oldest_needed(document["open"], document["units"], document["next_id"])


def parts(document: Document) -> Iterator[bytes]:
    """Yields the bytes of a captured state in parts of :data:`PART_BYTES`; each step takes milliseconds."""
    waiting = bytearray()
    for piece in _pieces(document):
        waiting += piece
        while len(waiting) >= PART_BYTES:
            yield bytes(waiting[:PART_BYTES])
            del waiting[:PART_BYTES]
    yield bytes(waiting)


def manifest(part_ids: Sequence[int], since: int) -> bytes:
    """Returns the data of the entry that makes a snapshot of its parts."""
    return orjson.dumps({"version": VERSION, "since": since, "parts": list(part_ids)})


def part_ids(data: bytes) -> tuple[int, ...]:
    """Returns the ids of the entries with a snapshot's parts.

    Raises:
        LogCorruptError: the data is no snapshot.
    """
    try:
        return tuple(map(int, orjson.loads(data)["parts"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise LogCorruptError(f"the log's snapshot cannot be read: {error}") from error


def dump(state: FoldedLog) -> bytes:
    """Returns the state as bytes, in one piece."""
    return b"".join(_pieces(capture(state)))


def _pieces(document: Document) -> Iterator[bytes]:
    separator = b"{"
    for name, value in document.items():
        yield separator + orjson.dumps(name) + b":"
        separator = b","
        if isinstance(value, list):
            yield from _list_pieces(value)
        else:
            yield orjson.dumps(value)
    yield b"}"


def _list_pieces(items: list[Any]) -> Iterator[bytes]:
    yield b"["
    separator = b""
    for some in _slices(items):
        yield separator + orjson.dumps(some, default=_plain)[1:-1]
        separator = b","
    yield b"]"


def _slices(items: list[Any]) -> Iterator[list[Any]]:
    """Yields the items in order, about :data:`SLICE` at a time; a unit with many signatures counts for many."""
    some: list[Any] = []
    weight = 0
    for item in items:
        some.append(item)
        weight += 1 + (len(item.written) + len(item.read)) // 50 if isinstance(item, UnitState | OpenUnit) else 1
        if weight >= SLICE:
            yield some
            some, weight = [], 0
    if some:
        yield some


def _plain(value: AbstractSet[int] | AbstractSet[str] | AbstractSet[bytes] | bytes) -> object:
    """Returns bytes as text, and a set as a list of numbers or names, or as text of digests: orjson takes neither."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    members: list[Any] = sorted(value) if len(value) <= SORTED else list(value)
    return join_digests(members) if members and isinstance(members[0], bytes) else members


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keeps the collector from looking through millions of new objects, none of which is garbage, again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_without_garbage_collection()
def load(data: bytes) -> FoldedLog:
    """Returns the state that :func:`dump` was given.

    Raises:
        LogCorruptError: the data is no snapshot, or has a version that this release cannot read.
    """
    try:
        fields = orjson.loads(data)
        if fields["version"] != VERSION:
            raise LogCorruptError(f"the log's snapshot has version {fields['version']}; this release reads {VERSION}")
        return _state(fields)
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise LogCorruptError(f"the log's snapshot cannot be read: {error}") from error


def _state(fields: dict[str, Any]) -> FoldedLog:
    state = FoldedLog()
    state.next_id = fields["next_id"]
    state.stream = fields["stream"]
    state.positions = {shard: Position(int(number), sub) for shard, (number, sub) in fields["positions"].items()}
    state.open.update((unit["uow"], _open_unit(unit)) for unit in fields["open"])
    state.ready = dict(fields["ready"])
    state.recent = _recent(fields)
    state.next_number = fields["next_number"]
    state.through = fields["through"]
    state.answered = dict.fromkeys(fields["answered"])
    state.schemes = {name: _scheme(tables) for name, tables in fields["schemes"].items()}
    state.ended = EndedUnits((uow, due_ms, base64.b64decode(packed)) for uow, due_ms, packed in fields["ended"])
    state.started_ms = fields["started_ms"]
    state.latest_time = None if (latest := fields["latest_time"]) is None else (latest[0], latest[1])
    state.restore_units(_unit(unit) for unit in fields["units"])
    return state


def _recent(fields: dict[str, Any]) -> RecentUnits:
    tail = [(uow, number) for uow, number in fields["recent"]]
    segments = (Segment(*segment) for segment in fields["segments"])
    numbers = NumberSet(fields["numbers"], fields["numbers_since"])
    return RecentUnits(tail, segments, numbers, fields["forgotten"], fields["names_first"])


def _scheme(tables: dict[str, Any]) -> Scheme:
    return Scheme({name: TableScheme(table["digest"], tuple(table["parents"])) for name, table in tables.items()})


def _open_unit(fields: dict[str, Any]) -> OpenUnit:
    sets = {name: set(fields[name]) for name in ("ordinals", "written", "read", "tables", "unsigned")}
    digests = set(split_digests(fields["digests"] or ""))
    return OpenUnit(**{**fields, **sets, "digests": digests, "kind": UnitKind(fields["kind"])})


def _unit(fields: dict[str, Any]) -> UnitState:
    converted = {
        "kind": UnitKind(fields["kind"]),
        "status": UnitStatus(fields["status"]),
        "written": frozenset(fields["written"]),
        "read": frozenset(fields["read"]),
        "fragments": tuple(fields["fragments"]),
        "shards": tuple(fields["shards"]),
        "tables": shared_tables(tuple(fields["tables"])),
        "unsigned": tuple(fields["unsigned"]),
        "fault": None if (fault := fields["fault"]) is None else Fault(fault),
        "late": _open_unit(opened) if (opened := fields["late"]) else None,
    }
    return UnitState(**{**fields, **converted})
