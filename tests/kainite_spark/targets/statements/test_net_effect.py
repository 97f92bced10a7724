"""What is folded, and what is not, change by change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, Table, TypeFamily, UniqueKey
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.net_effect import NetEffect

INTEGER, TEXT = TypeFamily.INTEGER, TypeFamily.TEXT


def table(name: str, *columns: Column, **more: Any) -> Table:
    given: dict[str, Any] = {"primary_key": ("id",), "judged": (), **more}
    return Table(name, "public", {column.name: column for column in (ID, *columns)}, **given)


ID = Column("id", "bigint", INTEGER, nullable=False)
QTY = Column("qty", "integer", INTEGER)
NOTE = Column("note", "character varying(4)", TEXT)
PRICE = Column("price", "integer", INTEGER, nullable=False)
CHECKED = Column("checked", "integer", INTEGER)
CODE, SHELF, ODD = Column("code", "text", TEXT), Column("shelf", "bigint", INTEGER), Column("odd", "mood", TEXT)
TABLES = (
    table(
        "item",
        *(QTY, NOTE, PRICE, CODE, CHECKED, SHELF, ODD),
        unique_keys=(UniqueKey("item_code", ("code",)),),
        foreign_keys=(ForeignKey("item_shelf", ("shelf",), "shelf", ("id",), on_delete=ReferentialAction.CASCADE),),
        judged=("checked",),
    ),
    table("shelf", QTY),
    table("hooked", QTY, judged=None),
    table("partial", QTY, unique_keys=(UniqueKey("partial_qty", ()),)),
    table("whole", QTY),
    table("part", QTY, part_of="whole"),
)
CATALOGUE = Catalogue({one.name: one for one in TABLES}, "public")
SIGNATURES = Signatures(CATALOGUE)


def unit(*deltas: Delta) -> Unit:
    return Unit(0, "T", deltas, *SIGNATURES.of(deltas))


def insert(name: str, /, **row: Any) -> Delta:
    return Delta(name, Operation.INSERT, {"id": row["id"]}, row, {})


def upsert(name: str, /, **row: Any) -> Delta:
    return Delta(name, Operation.UPSERT, {"id": row["id"]}, row, {})


def update(name: str, key: Any, /, **row: Any) -> Delta:
    return Delta(name, Operation.UPDATE, {"id": key}, row, {})


def delete(name: str, key: Any, /) -> Delta:
    return Delta(name, Operation.DELETE, {"id": key}, {}, {})


def net(*units: Unit) -> list[Unit]:
    return NetEffect(CATALOGUE, TouchedKeys(CATALOGUE, PLAIN)).of(units)


def rows(*deltas: Delta) -> list[dict[str, Any]]:
    """Returns what is left of deltas that are each in a unit of its own."""
    return [{"op": d.op.value, **d.row} for one in net(*map(unit, deltas)) for d in one.deltas]


@pytest.mark.parametrize(
    ("one", "other", "left"),
    [
        (update("item", 1, qty=1), update("item", 1, qty=2), {"op": "update", "qty": 2}),
        (update("item", 1, qty=1), update("item", 1, note="x"), {"op": "update", "qty": 1, "note": "x"}),
        (update("item", 1, id=1, qty=1), update("item", 1, id=1, qty=2), {"op": "update", "id": 1, "qty": 2}),
        (update("item", 1, qty=1), update("item", 1, id=1, qty=2), {"op": "update", "id": 1, "qty": 2}),
        (update("item", 1, qty=None), update("item", 1, qty=2), {"op": "update", "qty": 2}),
        (
            update("item", 1, code="a", qty=1),
            update("item", 1, code="a", qty=2),
            {"op": "update", "code": "a", "qty": 2},
        ),
        (update("item", 1, checked=1), update("item", 1, checked=1), {"op": "update", "checked": 1}),
        (update("item", 1, odd="sad"), update("item", 1, odd="sad"), {"op": "update", "odd": "sad"}),
        (insert("item", id=1, qty=1), update("item", 1, qty=2), {"op": "insert", "id": 1, "qty": 2}),
        (insert("item", id=1), update("item", 1, note="x"), {"op": "insert", "id": 1, "note": "x"}),
        (upsert("item", id=1, qty=1), upsert("item", id=1, qty=2), {"op": "upsert", "id": 1, "qty": 2}),
        (upsert("item", id=1, qty=1), update("item", 1, note="x"), {"op": "upsert", "id": 1, "qty": 1, "note": "x"}),
    ],
)
def test_two_changes_become_one(one: Delta, other: Delta, left: dict[str, Any]) -> None:
    assert rows(one, other) == [left]
    assert rows(one, update("item", 2, qty=1), other)[0] == left


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # not surely the same row
        (update("item", 1, qty=1), update("item", "1", qty=2)),
        (update("item", 1, qty=1), update("item", 2, qty=2)),
        # the target might refuse the value that would be dropped
        (update("item", 1, qty="many"), update("item", 1, qty=2)),
        (update("item", 1, qty=2**40), update("item", 1, qty=2)),
        (update("item", 1, note="too long"), update("item", 1, note="x")),
        (update("item", 1, price=None), update("item", 1, price=2)),
        (update("item", 1, checked=1), update("item", 1, checked=2)),
        (update("item", 1, code="a"), update("item", 1, code="b")),
        (update("item", 1, shelf=1), update("item", 1, shelf=2)),
        (update("item", 1, odd="sad"), update("item", 1, odd="glad")),
        # a constraint would see columns together that came one after the other
        (update("item", 1, qty=1), update("item", 1, code="b")),
        (update("item", 1, qty=1), update("item", 1, checked=1)),
        (insert("item", id=1), update("item", 1, price=1)),
        (upsert("item", id=1), update("item", 1, price=1)),
        # not changes that follow one another
        (update("item", 1, qty=1), upsert("item", id=1, qty=1)),
        (upsert("item", id=1, qty=1), upsert("item", id=1, note="x")),
        (update("item", 1, qty=1), delete("item", 1)),
        (insert("item", id=1), delete("item", 1)),
        (delete("item", 1), insert("item", id=1)),
        (update("item", 1, id=2), update("item", 2, qty=1)),
        (update("item", 1, qty=1), update("item", 1, id=2, qty=1)),
        # tables whose rules are not known
        (update("hooked", 1, qty=1), update("hooked", 1, qty=1)),
        (update("partial", 1, qty=1), update("partial", 1, qty=1)),
        (update("part", 1, qty=1), update("part", 1, qty=1)),
        (update("whole", 1, qty=1), update("whole", 1, qty=1)),
    ],
)
def test_two_changes_stay_two(one: Delta, other: Delta) -> None:
    assert len(rows(one, other)) == 2


@pytest.mark.parametrize(
    "between",
    [
        (delete("item", 1), insert("item", id=1)),
        (update("item", 1, id=2), update("item", 2, id=1)),
        (update("item", 2, id=1),),
        (update("item", "1", qty=9),),
        (delete("shelf", 7),),
    ],
    ids=["gone and back", "moved and back", "another row moved there", "perhaps the same row", "a cascade"],
)
def test_what_may_touch_the_row_in_between_ends_the_fold(between: tuple[Delta, ...]) -> None:
    assert rows(update("item", 1, qty=1), *between, update("item", 1, qty=2))[0] == {"op": "update", "qty": 1}


def test_a_row_with_other_rows_between_is_changed_where_it_was_changed_first() -> None:
    listed = [update("item", number % 3, qty=number) for number in range(9)]
    folded = net(*map(unit, listed))
    assert [[d.key["id"] for d in one.deltas] for one in folded] == [[0], [1], [2], [], [], [], [], [], []]
    assert [d.row for one in folded for d in one.deltas] == [{"qty": 6}, {"qty": 7}, {"qty": 8}]


def test_units_keep_their_names_and_places() -> None:
    units = [replace(unit(update("item", 1, qty=n)), tid=n, uow=f"T-{n}", size=10) for n in range(3)]
    assert [(one.tid, one.uow, one.size) for one in net(*units)] == [(n, f"T-{n}", 10) for n in range(3)]


def test_a_unit_that_lost_a_change_does_not_write_it_any_more() -> None:
    hot, others = update("item", 1, qty=1, code="a"), [insert("shelf", id=n) for n in (1, 2)]
    first, second = net(unit(hot, others[0]), unit(hot, others[1]))
    assert (first.written, first.read) == SIGNATURES.of([hot, others[0]])
    assert second.written == SIGNATURES.of([others[1]])[0]


def test_what_else_the_unit_does_on_the_table_is_still_signed() -> None:
    hot, own = update("item", 1, qty=1), update("item", 5, qty=1)
    _, second = net(unit(hot), unit(hot, own))
    assert (second.written, second.read) == SIGNATURES.of([own])


def test_signatures_of_another_catalogue_stay_when_they_cannot_be_told_apart() -> None:
    hot, own = update("item", 1, qty=1), update("item", 5, qty=1)
    foreign = replace(unit(hot, own), written=frozenset({1, 2, 3}))
    _, second = net(unit(hot), foreign)
    assert second.written == {1, 2, 3}


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(TargetRejectedError, match="no table nowhere"):
        net(Unit(0, "T", (Delta("nowhere", Operation.INSERT, {}, {"id": 1}, {}),)))


def test_a_group_that_is_folded_again_is_as_it_was() -> None:
    # A target folds a group, and after a refusal each half of it: no fold may change what the next one is given.
    units = [unit(update("shelf", 1, qty=number), update("shelf", number, qty=number)) for number in range(2, 9)]
    before = repr(units)
    effect = NetEffect(CATALOGUE, TouchedKeys(CATALOGUE, PLAIN))
    whole = repr(effect.of(units))
    halves = [repr(effect.of(half)) for half in (units[:3], units[3:])]
    assert repr(units) == before
    assert [whole, *halves] == [repr(net(*group)) for group in (units, units[:3], units[3:])]
