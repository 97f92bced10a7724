"""Entries, batches and fragments for the log's tests, and Hypothesis strategies for them."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.contract import Fork, LogStore
from kainite.log.format.entry import (
    Batch,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    OperationMeta,
    Outcome,
    PositionMeta,
    RefitMeta,
    ReqId,
    SchemeMeta,
    StatusMeta,
    TargetMeta,
    TransactionMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog, oldest_needed
from kainite.uow.delta import Delta, Operation, UnitEnd, UnitKind
from kainite.uow.fragment import Fragment
from kainite.uow.packing import Blob, Piece
from kainite.uow.touches import Touched


def needed(state: FoldedLog) -> int:
    """Returns the lowest transaction id whose data somebody may still ask for."""
    return oldest_needed(state.open.values(), state.units.values(), state.next_id)


def delta(key: int, ordinal: int | None = None, table: str = "t") -> Delta:
    return Delta(table, Operation.UPSERT, {"id": key}, {"id": key, "v": key}, {}, ordinal)


def fragment(
    uow: str,
    keys: Iterable[int] = (),
    *,
    count: int | None = None,
    number: int | None = None,
    first_ordinal: int | None = None,
) -> Fragment:
    """Returns a fragment that writes the rows ``keys``; with ``count`` it brings the unit's end."""
    keys = list(keys)
    ordinals = [None if first_ordinal is None else first_ordinal + place for place in range(len(keys))]
    deltas = tuple(delta(key, ordinal) for key, ordinal in zip(keys, ordinals, strict=True))
    ends = () if count is None else (UnitEnd(count, number),)
    return Fragment(uow, deltas, Touched(frozenset(keys)), ends)


def entry(data: bytes = b"[]", uow: str = "T-1") -> Entry:
    return Entry(EntryKind.UNIT, UnitMeta(uow, 1), Touched(frozenset({1, 2}), frozenset({3})), data)


def batch(first_id: int, generation: int = 1, count: int = 1, data: bytes = b"[]") -> Batch:
    return Batch(first_id, generation, 1_700_000_000_000, tuple(entry(data, f"T-{first_id + i}") for i in range(count)))


def fork(store: LogStore, partition: str, stripes: int = 3, block: int = 2) -> None:
    """Spreads a partition that has no slot yet over several keys."""
    assert store.put_fence(partition, 0, 0, "fence") is None
    assert store.put_fork(partition, Fork(0, stripes, block), 0, "fork") is None
    assert store.read_tail(partition) is not None


_TEXT = st.text(max_size=20)
_NAMES = st.lists(_TEXT, max_size=2).map(tuple)
_NUMBER = st.none() | st.integers(0, 2**53)
_KIND = st.sampled_from(UnitKind)
_STATUS = st.sampled_from(UnitStatus)
_TIDS = st.integers(0, 2**62)
_HASHES = st.frozensets(st.integers(0, 2**64 - 1), max_size=4)
_TOUCHED = st.builds(Touched, _HASHES, _HASHES, _NAMES, _NAMES, st.none() | _TEXT)

_METAS = {
    EntryKind.FRAGMENT: st.builds(
        FragmentMeta, _TEXT, _TEXT, st.integers(0, 99), st.lists(st.integers(0, 9)).map(tuple),
        st.none() | st.builds(UnitEnd, st.integers(0, 99), _NUMBER, _KIND), _NAMES, st.none() | _TEXT,
        st.lists(st.binary(min_size=16, max_size=16), max_size=2).map(tuple), st.integers(0, 9), _NAMES,
        st.none() | st.sampled_from(Fault), time=_NUMBER, arrived_ms=_NUMBER, watermark=st.booleans(),
    ),
    EntryKind.UNIT: st.builds(
        UnitMeta, _TEXT, st.integers(0, 99), st.lists(_TEXT, max_size=2).map(tuple), st.lists(_TIDS).map(tuple),
        _NUMBER, _KIND, st.none() | _TEXT, st.none() | _TEXT, st.none() | st.sampled_from(Fault),
        time=_NUMBER, arrived_ms=_NUMBER, watermark=st.booleans(),
    ),
    EntryKind.STATUS: st.builds(
        StatusMeta,
        st.lists(st.builds(Outcome, _TIDS, _STATUS, _NUMBER, st.none() | _TEXT, _NUMBER), max_size=3).map(tuple),
        _NUMBER, st.lists(_TEXT, max_size=2).map(tuple),
    ),
    EntryKind.POSITION: st.builds(
        PositionMeta.of, _TEXT, st.builds(Position, st.integers(0, 2**190), st.integers(0, 9))
    ),
    EntryKind.CONTROL: st.builds(ControlMeta, _TEXT, _NUMBER, st.integers(0, 9), st.none() | _TEXT, st.integers(0, 9)),
    EntryKind.SCHEME: st.builds(
        SchemeMeta, _TEXT, st.dictionaries(_TEXT, st.tuples(_TEXT, st.lists(_TEXT, max_size=2).map(tuple)), max_size=2)
    ),
    EntryKind.REFIT: st.builds(RefitMeta, _TIDS, _TEXT, st.integers(0, 99)),
    EntryKind.OPERATION: st.builds(
        OperationMeta, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, st.integers(0, 2**53), _TEXT, _TEXT, st.integers(0, 99),
        st.integers(0, 99), st.integers(-1, 2**53), st.integers(0, 99),
    ),
    EntryKind.TARGET: st.builds(
        TargetMeta, _TEXT, st.lists(st.builds(Outcome, _TIDS, _STATUS, _NUMBER), max_size=3).map(tuple), _TIDS
    ),
    EntryKind.TRANSACTION: st.builds(TransactionMeta, st.integers(-(2**31), 2**31 - 1)),
}  # fmt: skip

REQ_IDS = st.builds(ReqId, *[st.integers(-(2**31), 2**31 - 1)] * 4)
_BLOBS = [Blob.of(b"[1,2,3]" * 3), Blob.of(b"x"), Blob.of(b"y" * 999)]
_PIECES = st.sampled_from(_BLOBS).flatmap(
    lambda blob: st.builds(Piece, st.just(blob), st.just(0), st.integers(0, blob.size))
)
ENTRIES = st.sampled_from(EntryKind).flatmap(
    lambda kind: (
        st.builds(Entry, st.just(kind), _METAS[kind], _TOUCHED, st.binary(max_size=50), REQ_IDS)
        | st.builds(Entry, st.just(kind), _METAS[kind], _TOUCHED, st.just(b""), REQ_IDS, _PIECES)
    )
)
BATCHES = st.builds(
    Batch,
    st.integers(0, 2**62),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**62),
    st.lists(ENTRIES, max_size=6).map(tuple),
)
