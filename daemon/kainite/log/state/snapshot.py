"""A snapshot: a folded log as bytes, the data of CONTROL entries.

The CONTROL entry that HEAD names holds the ids of the CONTROL entries before it that hold the snapshot's bytes, cut
into parts, and the id (*since*) below which all entries add up to the state; other entries may stand between since, the
parts and this entry. :mod:`~kainite.log.state.snapshot_sections` has the bytes' form.

A snapshot is made in three steps, none of which keeps the event loop for long: :func:`capture` copies the state's
dictionaries, whose values do not change, or are copied before they do; :func:`parts` encodes the copy slice by slice,
on a thread; the parts are appended one after another. A crash among them leaves parts that nothing refers to: HEAD
still names the snapshot before, whose entries are not truncated before HEAD names another one.
"""

from __future__ import annotations

import contextlib
import gc
import struct
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from kainite.base.errors import LogCorruptError
from kainite.base.position import Position
from kainite.log.state.ended_units import EndedUnits
from kainite.log.state.folded import FoldedLog, oldest_needed
from kainite.log.state.number_set import NumberSet
from kainite.log.state.operations import DoneOperations
from kainite.log.state.recent_units import RecentUnits, Segment
from kainite.log.state.snapshot_sections import (
    VERSION,
    Captured,
    SchemeTables,
    SnapshotHeader,
    decoded_sections,
    encoded_sections,
)
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import Touched

PART_BYTES = 1 << 20
"""Size of a part: far below every limit of a batch, and small enough for one step of anybody."""


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
    for section in encoded_sections(captured):
        waiting += section
        while len(waiting) >= PART_BYTES:
            yield bytes(waiting[:PART_BYTES])
            del waiting[:PART_BYTES]
    yield bytes(waiting)


def dump(state: FoldedLog) -> bytes:
    """Returns the state as bytes, in one piece."""
    data = b"".join(encoded_sections(capture(state)))
    state.take_units_back()
    return data


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
        return _state(decoded_sections(data))
    except (msgspec.DecodeError, struct.error, ValueError, LookupError, RecursionError) as error:
        raise LogCorruptError(f"the log's snapshot cannot be read: {error}") from error


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


def _tables(scheme: Scheme) -> SchemeTables:
    return {name: (table.digest, table.parents) for name, table in scheme.tables.items()}


def _scheme(tables: SchemeTables) -> Scheme:
    return Scheme({name: TableScheme(digest, parents) for name, (digest, parents) in tables.items()})


def _share_tables(touched: Touched) -> None:
    # Most units of a backlog, which may have a million, touch the same tables. The value is fresh: nobody has it yet.
    msgspec.structs.force_setattr(touched, "tables", _one_for_all(touched.tables))


@lru_cache(maxsize=1024)
def _one_for_all(tables: tuple[str, ...]) -> tuple[str, ...]:
    return tables
