"""A snapshot: a folded log as bytes, the data of CONTROL entries.

The CONTROL entry that HEAD names holds the ids of the CONTROL entries before it that hold the snapshot's bytes, cut
into parts, and the id (*since*) below which all entries add up to the state; other entries may stand between since, the
parts and this entry.

The bytes are a run of sections, each its length (u32, big-endian) and MessagePack of one of the classes below: a
:class:`SnapshotHeader`, then what there may be many of, some at a time. The bytes follow from the classes; a change of
one is a new :data:`VERSION`.

A snapshot is made in three steps, none of which keeps the event loop for long: :func:`capture` copies the state's
dictionaries, whose values do not change, or are copied before they do; :func:`parts` encodes the copy slice by slice,
on a thread; the parts are appended one after another. A crash among them leaves parts that nothing refers to: HEAD
still names the snapshot before, whose entries are not truncated before HEAD names another one.
"""

from __future__ import annotations

import contextlib
import gc
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from kainite.base.errors import LogCorruptError
from kainite.base.position import Position
from kainite.log.format.entry import Natural, OperationMeta, SequenceNumber
from kainite.log.state.ended_units import EndedUnits
from kainite.log.state.folded import FoldedLog, oldest_needed
from kainite.log.state.number_set import NumberSet
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.operations import DoneOperations
from kainite.log.state.recent_units import RecentUnits, Segment
from kainite.log.state.target_parts import PartsOfUnit, TargetParts
from kainite.log.state.unit_state import UnitState
from kainite.settings.assignment import assignment_from
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import Touched

VERSION: Final = 1

PART_BYTES = 1 << 20
"""Size of a part: far below every limit of a batch, and small enough for one step of anybody."""

SLICE = 500
"""How many items are encoded in one step: a thread that encodes holds the interpreter for the whole step."""

SORTED = 10_000
"""Sets up to this size are sorted, so that equal states have equal bytes; sorting a larger one takes too long."""

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">I")
_Ranges: TypeAlias = list[tuple[int, int]]
_Tables: TypeAlias = dict[str, tuple[str, tuple[str, ...]]]


class SnapshotHeader(msgspec.Struct, frozen=True, tag="header"):
    """The fields of a :class:`~kainite.log.state.folded.FoldedLog`, and of its recent units, that are small."""

    version: Literal[1]
    next_id: Natural
    stream: str | None
    positions: dict[str, tuple[SequenceNumber, Natural]]
    segments: list[tuple[str, Natural, int | None]]
    numbers: _Ranges
    numbers_since: int | None
    forgotten: int | None
    names_first: Natural
    next_number: int | None
    through: int
    answered: list[str]
    schemes: dict[str, _Tables]
    latest_time: tuple[int, str] | None
    started: dict[str, int]
    awaited: list[str]
    pause: OperationMeta | None


class OpenUnitsSection(msgspec.Struct, frozen=True, tag="open"):
    """Units that are being collected."""

    items: list[OpenUnit]


class UnitsSection(msgspec.Struct, frozen=True, tag="units"):
    """Dispatched units that are not resolved."""

    items: list[UnitState]


class ReadyUnitsSection(msgspec.Struct, frozen=True, tag="ready"):
    """Complete units that wait for their turn, by number."""

    items: list[tuple[int, str]]


class NamesSection(msgspec.Struct, frozen=True, tag="names"):
    """Names of dispatched units that are in no segment, with their numbers."""

    items: list[tuple[str, int | None]]


class EndedUnitsSection(msgspec.Struct, frozen=True, tag="ended"):
    """Deltas of units that the watermark ended, as :meth:`EndedUnits.captured` gives them."""

    items: list[tuple[str, int, bytes]]


class OperationsSection(msgspec.Struct, frozen=True, tag="operations"):
    """What people did, oldest first."""

    items: list[OperationMeta]


class TargetsSection(msgspec.Struct, frozen=True, tag="targets"):
    """Several targets: the assignment, how far outcomes are copied, and parts of units; one target has no section."""

    assignment: str
    through: dict[str, int]
    items: list[PartsOfUnit]


class SnapshotManifest(msgspec.Struct, frozen=True):
    """The data of the CONTROL entry that HEAD names: the ids of the entries with the parts."""

    version: Literal[1]
    parts: Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1)]


_Section: TypeAlias = (
    SnapshotHeader
    | OpenUnitsSection
    | UnitsSection
    | ReadyUnitsSection
    | NamesSection
    | EndedUnitsSection
    | OperationsSection
    | TargetsSection
)

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_LARGE_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Section)
_MANIFEST: Final = msgspec.msgpack.Decoder(SnapshotManifest)


@dataclass(frozen=True, slots=True)
class Captured:
    """A copy of a state, which no later entry changes, to be encoded."""

    header: SnapshotHeader
    open: list[OpenUnit]
    units: list[UnitState]
    ready: dict[int, str]
    names: list[tuple[str, int | None]]
    ended: dict[str, tuple[int, bytes]]
    operations: list[OperationMeta]
    targets: TargetParts


def capture(state: FoldedLog) -> Captured:
    """Returns the state as it is now, which later entries do not change; quick enough for the event loop.

    Units that are still being collected are lent (:meth:`FoldedLog.lend_units`); when the bytes are made, the caller
    tells the state so.
    """
    recent = state.recent
    header = SnapshotHeader(
        version=VERSION,
        next_id=state.next_id,
        stream=state.stream,
        positions={shard: (str(at.sequence), at.sub) for shard, at in state.positions.items()},
        segments=[(segment.key, segment.count, segment.highest) for segment in recent.segments],
        numbers=recent.numbers.ranges(),
        numbers_since=recent.numbers.since,
        forgotten=recent.forgotten,
        names_first=recent.first,
        next_number=state.next_number,
        through=state.through,
        answered=list(state.answered),
        schemes={name: _tables(scheme) for name, scheme in state.schemes.items()},
        latest_time=state.latest_time,
        started=dict(state.started),
        awaited=sorted(state.awaited),
        pause=state.operations.pause,
    )
    return Captured(
        header,
        *state.lend_units(),
        dict(state.ready),
        recent.tail(),
        state.ended.captured(),
        state.operations.all(),
        state.targets.copy(),
    )


def needed_by(captured: Captured) -> int:
    """Returns the lowest transaction id whose data the captured state may still need."""
    return oldest_needed(captured.open, captured.units, captured.header.next_id)


def parts(captured: Captured) -> Iterator[bytes]:
    """Yields the bytes of a captured state in parts of :data:`PART_BYTES`; each step takes milliseconds."""
    waiting = bytearray()
    for section in _sections(captured):
        waiting += section
        while len(waiting) >= PART_BYTES:
            yield bytes(waiting[:PART_BYTES])
            del waiting[:PART_BYTES]
    yield bytes(waiting)


def manifest(part_ids: Sequence[int]) -> bytes:
    """Returns the data of the entry that names the parts of a snapshot."""
    return _ENCODER.encode(SnapshotManifest(VERSION, tuple(part_ids)))


def part_ids(data: bytes) -> tuple[int, ...]:
    """Returns the ids of the entries with a snapshot's parts.

    Raises:
        LogCorruptError: the data is no list of parts.
    """
    try:
        return _MANIFEST.decode(data).parts
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LogCorruptError(f"the log's snapshot cannot be read: {error}") from error


def dump(state: FoldedLog) -> bytes:
    """Returns the state as bytes, in one piece."""
    data = b"".join(_sections(capture(state)))
    state.take_units_back()
    return data


def _sections(captured: Captured) -> Iterator[bytes]:
    yield _section(captured.header)
    for opened in _slices(captured.open, lambda unit: len(unit.touched.written) + len(unit.touched.read)):
        yield _section(OpenUnitsSection(opened))
    for units in _slices(captured.units, lambda unit: len(unit.written) + len(unit.read)):
        yield _section(UnitsSection(units))
    for ready in _slices(captured.ready.items()):
        yield _section(ReadyUnitsSection(ready))
    for names in _slices(captured.names):
        yield _section(NamesSection(names))
    for ended in _slices((uow, *remembered) for uow, remembered in captured.ended.items()):
        yield _section(EndedUnitsSection(ended))
    for operations in _slices(captured.operations):
        yield _section(OperationsSection(operations))
    targets = captured.targets
    if targets.assignment or targets.through:
        assignment, through = targets.assignment.as_text(), targets.through
        for some in _slices(PartsOfUnit(tid, parts) for tid, parts in targets.units.items()):
            yield _section(TargetsSection(assignment, {}, some))
        yield _section(TargetsSection(assignment, through, []))


def _section(section: _Section) -> bytes:
    encoder = _LARGE_ENCODER if _is_large(section) else _ENCODER
    data = encoder.encode(section)
    return _LENGTH.pack(len(data)) + data


def _is_large(section: _Section) -> bool:
    """Returns whether the section is one unit that has too many signatures to sort them."""
    match section:
        case OpenUnitsSection([unit]):
            touched = unit.touched
            return len(touched.written) + len(touched.read) > SORTED
        case UnitsSection([state]):
            return len(state.written) + len(state.read) > SORTED
    return False


def _slices(items: Iterable[T], signatures: Callable[[T], int] = lambda _: 0) -> Iterator[list[T]]:
    """Yields the items in order, about :data:`SLICE` at a time; a unit with many signatures counts for many.

    A unit with more than :data:`SORTED` signatures has a slice of its own.
    """
    some: list[T] = []
    weight = 0
    for item in items:
        more = 1 + signatures(item) // 50
        if some and (weight + more > SLICE or more > SORTED // 50):
            yield some
            some, weight = [], 0
        some.append(item)
        weight += more
        if weight >= SLICE or more > SORTED // 50:
            yield some
            some, weight = [], 0
    if some:
        yield some


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
        return _state(_read(data))
    except (msgspec.DecodeError, struct.error, ValueError, LookupError, RecursionError) as error:
        raise LogCorruptError(f"the log's snapshot cannot be read: {error}") from error


def _read(data: bytes) -> Captured:
    """Returns the state in the sections."""
    sections, begin = [], 0
    view = memoryview(data)
    while begin < len(data):
        end = begin + _LENGTH.size + _LENGTH.unpack_from(view, begin)[0]
        if end > len(data):
            raise ValueError("it is cut short")
        sections.append(_DECODER.decode(view[begin + _LENGTH.size : end]))
        begin = end
    if not sections or not isinstance(sections[0], SnapshotHeader):
        raise ValueError("it does not begin with its header")
    found = Captured(sections[0], [], [], {}, [], {}, [], TargetParts())
    for section in sections[1:]:
        match section:
            case OpenUnitsSection(opened):
                found.open.extend(opened)
            case UnitsSection(units):
                found.units.extend(units)
            case ReadyUnitsSection(ready):
                found.ready.update(ready)
            case NamesSection(names):
                found.names.extend(names)
            case EndedUnitsSection(ended):
                found.ended.update((uow, (due_ms, packed)) for uow, due_ms, packed in ended)
            case OperationsSection(operations):
                found.operations.extend(operations)
            case TargetsSection(assignment, through, items):
                found.targets.assignment = assignment_from(assignment)
                found.targets.through.update(through)
                found.targets.units.update((item.tid, item.parts) for item in items)
            case SnapshotHeader():
                raise ValueError("it has two headers")
    return found


def _state(captured: Captured) -> FoldedLog:
    header = captured.header
    state = FoldedLog()
    state.next_id = header.next_id
    state.stream = header.stream
    state.positions = {shard: Position(int(number), sub) for shard, (number, sub) in header.positions.items()}
    state.open.update((unit.uow, unit) for unit in captured.open)
    state.open_deltas = sum(unit.held for unit in captured.open)
    state.ready = captured.ready
    segments = (Segment(*segment) for segment in header.segments)
    numbers = NumberSet(header.numbers, header.numbers_since)
    state.recent = RecentUnits(captured.names, segments, numbers, header.forgotten, header.names_first)
    state.next_number = header.next_number
    state.through = header.through
    state.answered = dict.fromkeys(header.answered)
    state.schemes = {name: _scheme(tables) for name, tables in header.schemes.items()}
    state.ended = EndedUnits((uow, *remembered) for uow, remembered in captured.ended.items())
    state.latest_time = header.latest_time
    state.started = header.started
    state.awaited = set(header.awaited)
    state.operations = DoneOperations(captured.operations, header.pause)
    for unit in captured.units:
        _share_tables(unit.own)
    state.targets = captured.targets
    state.restore_units(captured.units)
    return state


def _tables(scheme: Scheme) -> _Tables:
    return {name: (table.digest, table.parents) for name, table in scheme.tables.items()}


def _scheme(tables: _Tables) -> Scheme:
    return Scheme({name: TableScheme(digest, parents) for name, (digest, parents) in tables.items()})


def _share_tables(touched: Touched) -> None:
    # Most units of a backlog, which may have a million, touch the same tables. The value is fresh: nobody has it yet.
    msgspec.structs.force_setattr(touched, "tables", _one_for_all(touched.tables))


@lru_cache(maxsize=1024)
def _one_for_all(tables: tuple[str, ...]) -> tuple[str, ...]:
    return tables
