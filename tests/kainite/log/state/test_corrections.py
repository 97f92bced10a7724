"""The failed units that a correction replaces, and those whose correction may have been applied in their place."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import Entry, EntryKind, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.corrections import correction_of
from kainite.log.state.folded import FoldedLog
from kainite.uow.delta import UnitKind
from kainite.uow.scheme import MIXED
from kainite.uow.touched.key import ROW
from kainite.uow.touches import Touched

SEVEN, OTHER, SEVERAL = 7 | ROW, 8 | ROW, 7


def state(
    signature: int = SEVEN,
    kind: UnitKind = UnitKind.CORRECTION,
    status: UnitStatus | None = None,
    scheme: str | None = "S",
) -> FoldedLog:
    """Returns a log with the failed unit F, which touches a row, and a unit C behind it."""
    folded = FoldedLog()
    touched = (
        Touched(frozenset({SEVEN, SEVERAL}), tables=("t",), scheme="S"),
        Touched(frozenset({signature}), tables=("t",), scheme=scheme),
    )
    metas = (UnitMeta("F", 1), UnitMeta("C", 1, kind=kind))
    for tid, (meta, one) in enumerate(zip(metas, touched, strict=True)):
        folded.apply(tid, Entry(EntryKind.UNIT, meta, one), 0)
    outcomes = [Outcome(0, UnitStatus.FAILED, cause="bad"), *([Outcome(1, status)] if status else [])]
    folded.apply(2, Entry(EntryKind.STATUS, StatusMeta(tuple(outcomes))), 0)
    return folded


@pytest.mark.parametrize("status", [None, UnitStatus.BLOCKED, UnitStatus.DISCARDING])
@pytest.mark.parametrize("kind", [UnitKind.CORRECTION, UnitKind.REVERSAL])
def test_a_correction_of_a_row_of_it_that_is_under_way_is_found(kind: UnitKind, status: UnitStatus | None) -> None:
    folded = state(kind=kind, status=status)
    found = correction_of(folded, folded.units[0])
    assert found is not None
    assert found.uow == "C"


@pytest.mark.parametrize(
    "folded",
    [
        state(OTHER),
        state(SEVERAL),
        state(scheme="R"),
        state(scheme=None),
        state(scheme=MIXED),
        state(kind=UnitKind.NORMAL),
        state(status=UnitStatus.FAILED),
        state(status=UnitStatus.DISCARDED),
        state(status=UnitStatus.COMMITTED),
    ],
    ids=[
        "touches other rows",
        "may touch it",
        "other rules",
        "no rules",
        "several rules",
        "is none",
        "has failed",
        "is discarded",
        "is committed",
    ],
)
def test_nothing_else_keeps_it_from_being_retried(folded: FoldedLog) -> None:
    assert correction_of(folded, folded.units[0]) is None


def test_a_correction_is_not_its_own() -> None:
    folded = state(status=UnitStatus.FAILED)
    assert correction_of(folded, folded.units[1]) is None
