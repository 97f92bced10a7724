"""The bytes of a snapshot: sections that follow from classes, and the list of the parts that the bytes are cut into.

The bytes are a run of sections, each its length (u32, big-endian) and MessagePack of one of the classes below: a
:class:`SnapshotHeader`, then what there may be many of, some at a time. A change of a class is a new :data:`VERSION`.
:mod:`kainite.log.state.snapshot` has the state that they stand for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Natural, OperationMeta, SequenceNumber
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.target_parts import PartsOfUnit, TargetParts
from kainite.log.state.unit_state import UnitState
from kainite.settings.assignment import assignment_from

VERSION: Final = 1

SLICE = 500
"""How many items are encoded in one step: a thread that encodes holds the interpreter for the whole step."""

SORTED = 10_000
"""Sets up to this size are sorted, so that equal states have equal bytes; sorting a larger one takes too long."""

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">I")
_Ranges: TypeAlias = list[tuple[int, int]]
SchemeTables: TypeAlias = dict[str, tuple[str, tuple[str, ...]]]
"""For each table of a scheme of signatures its digest, and the tables that its foreign keys name."""


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
    schemes: dict[str, SchemeTables]
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


def encoded_sections(captured: Captured) -> Iterator[bytes]:
    """Yields the sections of a captured state; each step takes milliseconds."""
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


def decoded_sections(data: bytes) -> Captured:
    """Returns the state in the sections.

    Raises:
        msgspec.DecodeError, ValueError, struct.error, LookupError, RecursionError: the bytes are no snapshot.
    """
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
