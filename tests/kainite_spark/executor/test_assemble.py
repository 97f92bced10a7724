"""Units assembled from the parts that the log holds."""

from __future__ import annotations

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogCorruptError
from kainite.log.format.deltas import read_deltas
from kainite.log.format.entry import Entry, EntryKind, UnitMeta
from kainite.uow.delta import Delta, Operation
from kainite.uow.packing import Blob, Piece
from kainite_spark.executor.assemble import assemble
from kainite_spark.plan.unit_part import UnitHeader, UnitPart, unit_part

UNREADABLE = Piece(Blob(b"no frame", 2, 0), 0, 2)


def delta(key: int, ordinal: int | None = None) -> Delta:
    return Delta("t", Operation.UPDATE, {"id": key}, {"v": key}, {"v": -key} if key else {}, ordinal)


def data(*deltas: Delta) -> bytes:
    return orjson.dumps([one.to_json() for one in deltas]) if deltas else b""


def head(size: int) -> UnitHeader:
    return UnitHeader("T-1", size, frozenset({1}), frozenset({2}))


@given(st.lists(st.integers(0, 99), unique=True), st.randoms(), st.integers(1, 4))
def test_deltas_with_ordinals_come_in_the_source_s_order_however_they_were_written(
    ordinals: list[int], chance: random.Random, parts: int
) -> None:
    written = [*ordinals, *ordinals[:2]]  # the first two were written twice
    chance.shuffle(written)
    entries = [UnitPart(7, n, data(*[delta(o, o) for o in written[n::parts]])) for n in range(parts)]
    entries[-1] = entries[-1]._replace(head=head(len(ordinals)))
    chance.shuffle(entries)

    (unit,) = assemble([*entries, entries[0]])

    assert unit.deltas == tuple(delta(o, o) for o in sorted(ordinals))
    assert (unit.tid, unit.uow, unit.written, unit.read) == (7, "T-1", frozenset({1}), frozenset({2}))


def test_deltas_without_ordinals_stay_as_they_arrived() -> None:
    parts = [UnitPart(7, 1, data(delta(3), delta(1)), head(3)), UnitPart(7, 0, data(delta(2, 5)))]

    (unit,) = assemble(parts)

    assert [one.key["id"] for one in unit.deltas] == [2, 3, 1]


def test_units_come_in_log_order_and_may_have_no_delta_of_their_own() -> None:
    parts = [UnitPart(9, 0, b"", head(0)), UnitPart(4, 1, b"", head(1)), UnitPart(4, 0, data(delta(1)))]

    assert [(unit.tid, len(unit.deltas)) for unit in assemble(parts)] == [(4, 1), (9, 0)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([UnitPart(7, 1, data(delta(1)), head(1))], "only parts"),
        ([UnitPart(7, 0, data(delta(1)))], "only parts"),
    ],
)
def test_without_one_of_its_parts_a_unit_is_no_unit(parts: list[UnitPart], message: str) -> None:
    with pytest.raises(LogCorruptError, match=message):
        assemble(parts)


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (UnitPart(7, 0, data(delta(1)), head(2)), "unit 7 (T-1) has 1 delta in the log, not 2"),
        (UnitPart(7, 0, data(delta(1), delta(2)), head(1)), "unit 7 (T-1) has 2 deltas in the log, not 1"),
        (UnitPart(7, 0, b"{", head(1)), "no JSON array"),
        (UnitPart(7, 0, b"", head(1), fault="cannot be decompressed"), "cannot be decompressed"),
        (unit_part(7, 0, Entry(EntryKind.UNIT, UnitMeta("T-1", 1), piece=UNREADABLE)), "cannot be decompressed"),
    ],
)
def test_a_unit_whose_deltas_are_not_those_that_were_announced_has_a_fault(part: UnitPart, fault: str) -> None:
    whole = UnitPart(8, 0, data(delta(1)), head(1))
    faulty, sound = assemble([part, whole])
    assert faulty.fault is not None
    assert fault in faulty.fault
    assert (faulty.tid, faulty.deltas, sound.fault) == (7, (), None)


def test_a_unit_that_is_too_large_has_a_fault_and_others_are_read() -> None:
    large = [UnitPart(7, 0, data(delta(1))), UnitPart(7, 1, data(delta(2)), head(2))]
    small = UnitPart(8, 0, data(delta(1)), head(1))
    bound = len(data(delta(1)) + data(delta(2))) - 1
    faulty, sound = assemble([*large, small], bound)
    assert (faulty.deltas, len(sound.deltas), sound.fault) == ((), 1, None)
    assert faulty.fault is not None
    assert faulty.fault.startswith(f"its deltas take more than {bound} bytes (applyUnitBytes)")
    assert [unit.fault for unit in assemble([*large, small], bound + 1)] == [None, None]


@pytest.mark.parametrize("broken", [b"{", b"{}x", b"[1]", b'[{"op":"insert"}]', b'[{"table":"t","op":"merge"}]'])
def test_data_that_are_no_deltas_are_a_corrupt_log(broken: bytes) -> None:
    with pytest.raises(LogCorruptError):
        read_deltas(broken)
