"""Who holds a row: the first unresolved unit that writes it; the others that write it wait."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogRequestError
from kainite.log.format.entry import Entry, EntryKind, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.views.row_holders import Toucher, touchers
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily
from kainite.uow.delta import Delta, Json, Operation
from kainite.uow.signature import Signatures
from kainite.uow.touches import Touched

INTEGER = Column("id", "integer", TypeFamily.INTEGER, nullable=False)
CATALOGUE = Catalogue(
    {
        "orders": Table("orders", None, {"id": INTEGER}, ("id",), (), ()),
        "line": Table(
            "line",
            None,
            {
                "order": Column("order", "integer", TypeFamily.INTEGER, nullable=False),
                "no": Column("no", "text", TypeFamily.TEXT, nullable=False),
            },
            ("order", "no"),
            (),
            (ForeignKey("f", ("order",), "orders", ("id",), False),),
        ),
    }
)


def delta(table: str, op: Operation, **key: Json) -> Delta:
    return Delta(table, op, key, dict(key) if op is Operation.INSERT else {}, {})


def state_of(catalogue: Catalogue | None, *units: list[Delta], outcomes: tuple[Outcome, ...] = ()) -> FoldedLog:
    """Returns the fold of one unit after the other, T-0 and on, and of their outcomes."""
    state, signatures = FoldedLog(), Signatures(catalogue)
    for tid, deltas in enumerate(units):
        written, read = signatures.of(deltas)
        state.apply(tid, Entry(EntryKind.UNIT, UnitMeta(f"T-{tid}", len(deltas)), Touched(written, read)), 0)
    state.apply(len(units), Entry(EntryKind.STATUS, StatusMeta(outcomes)), 0)
    return state


@pytest.mark.parametrize("catalogue", [CATALOGUE, None])
def test_the_first_unresolved_unit_holds_the_row_and_the_others_wait(catalogue: Catalogue | None) -> None:
    update = Operation.UPDATE
    state = state_of(
        catalogue,
        [delta("orders", update, id=17)],
        [delta("orders", update, id=17)],
        [delta("orders", update, id=18)],
        [delta("orders", Operation.DELETE, id=17)],
        outcomes=(
            Outcome(0, UnitStatus.COMMITTED, 2),
            Outcome(1, UnitStatus.FAILED, 3, "violates a check"),
            Outcome(3, UnitStatus.BLOCKED, None, "waits for 1"),
        ),
    )
    assert touchers(state, catalogue, "orders", {"id": "17"}) == [
        Toucher(1, "T-1", "failed", 3, None, "violates a check"),
        Toucher(3, "T-3", "blocked", None, 1, "waits for 1 (T-1)"),
    ]
    assert [unit.id for unit in touchers(state, catalogue, "orders", {"id": "18"})] == [2]
    assert touchers(state, catalogue, "orders", {"id": "19"}) == []


def test_a_key_of_several_columns_is_named_whole_and_each_value_by_its_column() -> None:
    state = state_of(CATALOGUE, [delta("line", Operation.INSERT, order=1, no="2")])
    assert [unit.uow for unit in touchers(state, CATALOGUE, "line", {"order": "1", "no": "2"})] == ["T-0"]
    assert touchers(state, CATALOGUE, "line", {"order": "2", "no": "1"}) == []


@pytest.mark.parametrize(
    ("table", "key"), [("lines", {"order": "1"}), ("line", {"order": "1"}), ("line", {"order": "x", "no": "1"})]
)
def test_a_row_that_the_catalogue_does_not_have_is_refused(table: str, key: dict[str, str]) -> None:
    with pytest.raises(LogRequestError, match="as the catalogue does, and each column of its primary key"):
        touchers(FoldedLog(), CATALOGUE, table, key)


def test_a_unit_with_a_row_that_is_not_known_may_hold_any_row_of_the_table() -> None:
    state = FoldedLog()
    state.apply(0, Entry(EntryKind.UNIT, UnitMeta("T-0", 1), Touched(tables=("orders",), unsigned=("orders",))), 0)
    assert [unit.id for unit in touchers(state, CATALOGUE, "orders", {"id": "1"})] == [0]
