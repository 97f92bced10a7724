"""The failed units that a correction passes, until when it passes them, and what the log shows of the others."""

from __future__ import annotations

import pytest

from kainite.log.state.unit_state import UnitState
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily
from kainite.uow.delta import UnitKind
from kainite.uow.scheme import Comparisons, Scheme
from kainite.uow.touched.key import ROW
from kainite_spark.plan.passing import MAY_TOUCH, Passing
from support.unit_states import unit_state

A_ROW, ANOTHER_ROW, SEVERAL_ROWS = 1 | ROW, 2 | ROW, 1
KINDS = [UnitKind.CORRECTION, UnitKind.REVERSAL]

ID = Column("id", "bigint", TypeFamily.INTEGER)
PARENT = Table("p", "public", {"id": ID}, ("id",))
CHILD = Table("t", "public", {"id": ID}, ("id",), foreign_keys=(ForeignKey("f", ("id",), "p", ("id",)),))
SCHEME = Scheme.of(Catalogue({"p": PARENT, "t": CHILD}, "public"))


def unit(
    tid: int,
    *written: int,
    kind: UnitKind = UnitKind.NORMAL,
    scheme: str | None = SCHEME.id,
    unsigned: tuple[str, ...] = (),
) -> UnitState:
    return unit_state(tid, written, kind=kind, tables=("t",), scheme=scheme, unsigned=unsigned)


def correction(tid: int, *written: int, kind: UnitKind = UnitKind.CORRECTION) -> UnitState:
    return unit(tid, *written, kind=kind)


def passing(*units: UnitState) -> Passing:
    schemes = Comparisons()
    schemes.add(SCHEME.id, SCHEME)
    return Passing({one.tid: one for one in units}, schemes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_correction_replaces_the_failed_units_before_it_of_which_it_writes_a_row_in_log_order(kind: UnitKind) -> None:
    failed = [unit(5, A_ROW), unit(1, A_ROW, SEVERAL_ROWS), unit(2, ANOTHER_ROW), unit(3, SEVERAL_ROWS)]
    later, corrects = unit(9, A_ROW), correction(8, A_ROW, SEVERAL_ROWS, kind=kind)
    held = passing(*failed, later, corrects)
    assert held.replaced(corrects, (one.tid for one in (*failed, later))) == (1, 5)


def test_a_unit_that_is_no_correction_replaces_nothing_and_corrects_nothing() -> None:
    failed, normal, corrects = unit(0, A_ROW), unit(1, A_ROW), correction(2, A_ROW)
    held = passing(failed, normal, corrects)
    assert held.replaced(normal, [0]) == ()
    assert held.left(unit(3, SEVERAL_ROWS, A_ROW), [0]) is None
    held.begin(corrects, (0,))
    assert not held.corrects_the_same(normal, [corrects])


def test_a_correction_passes_failed_units_from_its_examination_to_its_end() -> None:
    corrects = correction(2, A_ROW)
    held = passing(unit(0, A_ROW), unit(1, A_ROW), corrects)
    held.begin(corrects, (0, 1))
    assert held.end(2) == (0, 1)
    assert held.end(2) == (), "it has ended"


def test_a_correction_that_replaces_nothing_passes_nothing() -> None:
    corrects = correction(1, ANOTHER_ROW)
    held = passing(unit(0, A_ROW), corrects)
    held.begin(corrects, held.replaced(corrects, [0]))
    assert held.end(1) == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("row", "corrects_the_same"), [(A_ROW, True), (SEVERAL_ROWS, True), (ANOTHER_ROW, False)])
def test_another_correction_of_a_unit_that_one_passes_is_known_until_that_one_ends(
    row: int, corrects_the_same: bool, kind: UnitKind
) -> None:
    # The other one need not replace the failed unit: what that unit held back goes before all that conflict with it.
    first, other = correction(2, A_ROW), correction(3, row, kind=kind)
    held = passing(unit(0, A_ROW, SEVERAL_ROWS), unit(1, ANOTHER_ROW), first, other)
    assert not held.corrects_the_same(other, [first]), "it passes nothing yet"
    held.begin(first, (0,))
    assert held.corrects_the_same(other, [unit(1, A_ROW), first]) is corrects_the_same
    assert not held.corrects_the_same(other, []), "the first one is not in the micro-batch"
    held.end(2)
    assert not held.corrects_the_same(other, [first])


def test_the_failed_units_that_a_correction_may_touch_are_named_with_what_to_do() -> None:
    failed = [unit(tid, SEVERAL_ROWS) for tid in range(5)]
    corrects = correction(6, SEVERAL_ROWS, A_ROW)
    held = passing(*failed, unit(5, A_ROW), unit(7, SEVERAL_ROWS), corrects)
    assert held.left(corrects, [7, 5, 1]) == (
        f"T-1 (id 1) stays failed: {MAY_TOUCH}; compare the rows, then kainite uow discard T-1, or retry"
    ), "neither the unit that it replaces nor a later one"
    cause = held.left(corrects, reversed(range(5)))
    assert cause is not None
    assert cause.startswith("T-0 (id 0), T-1 (id 1), T-2 (id 2) and 2 more stays failed: ")
    assert cause.endswith("kainite uow discard T-0, or retry")


def test_a_correction_that_touches_no_failed_unit_leaves_none() -> None:
    corrects = correction(2, A_ROW)
    held = passing(unit(0, ANOTHER_ROW), unit(1, A_ROW), corrects)
    assert held.left(corrects, [0, 1]) is None


@pytest.mark.parametrize(
    "failed",
    [unit(0, ANOTHER_ROW, scheme="other rules"), unit(0, ANOTHER_ROW, unsigned=("p",))],
    ids=["signed by other rules", "a connected table that is not signed"],
)
def test_a_failed_unit_that_signatures_cannot_tell_apart_is_not_replaced_but_named(failed: UnitState) -> None:
    corrects = correction(1, A_ROW)
    held = passing(failed, corrects)
    assert held.replaced(corrects, [0]) == ()
    assert (held.left(corrects, [0]) or "").startswith("T-0 (id 0) stays failed")


def test_what_a_blocked_unit_waits_for_is_explained_for_a_correction_behind_a_failed_unit_alone() -> None:
    units = (unit(0, SEVERAL_ROWS), unit(1, SEVERAL_ROWS), unit(2, SEVERAL_ROWS), correction(3, SEVERAL_ROWS))
    held = passing(*units)
    assert held.waits_for(2, 0, {0: "refused"}) == "waits for 0"
    assert held.waits_for(3, 1, {0: "refused"}) == "waits for 1", "which has not failed"
    assert held.waits_for(3, 0, {0: "refused"}) == (
        f"waits for 0, which has failed: {MAY_TOUCH}; compare the rows, then kainite uow discard T-0, or retry"
    )
