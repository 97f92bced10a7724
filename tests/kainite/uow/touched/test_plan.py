"""What a delta on one table writes and reads, set by set; and the short ways, which come to the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.uow.delta import Delta, Operation
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite.uow.touched.plan import PARTS, TablePlan
from support.tables import PETS, SHOP
from support.touching import delta

PET = TouchedKeys(PETS, PLAIN).plan("pet")
OWNER = TouchedKeys(PETS, PLAIN).plan("owner")


def added(plan: TablePlan[str], one: Delta) -> dict[str, set[str]]:
    """Returns what the delta adds to each set, a token as its space: ``row``, ``existence``, ``part`` …"""
    sets: dict[str, set[str]] = {name: set() for name in ("rows", "existence", "cascades", "read")}
    plan.add(one, **sets)
    return {name: {token.partition("\0")[0] for token in tokens} for name, tokens in sets.items() if tokens}


CASCADE = "\1existence"  # the token derived of an existence


@pytest.mark.parametrize(
    ("plan", "one", "expected"),
    [
        (OWNER, delta("insert", "owner", 1), {"rows": {"row"}, "existence": {"existence"}}),
        (OWNER, delta("update", "owner", 1, name=5), {"rows": {"row"}}),
        (
            OWNER,
            delta("delete", "owner", 1),
            {"rows": {"row"}, "existence": {"existence"}, "cascades": {CASCADE, "part", "whole"}},
        ),
        (PET, delta("update", "pet", 1, {"owner": 2}, v=5), {"rows": {"row"}, "read": {CASCADE}}),
        (PET, delta("update", "pet", 1, v=5), {"rows": {"row"}, "read": {"part", "whole"}}),
        (
            PET,
            delta("insert", "pet", 1, owner=2),
            {"rows": {"row"}, "existence": {"existence"}, "read": {"existence", CASCADE}},
        ),
    ],
)
def test_what_a_delta_adds(plan: TablePlan[str], one: Delta, expected: dict[str, set[str]]) -> None:
    assert added(plan, one) == expected


def test_a_child_without_its_old_parent_reads_every_part() -> None:
    read: set[str] = set()
    PET.add(delta("delete", "pet", 1), set(), set(), set(), read)

    assert sum(token.startswith("part\0") for token in read) == PARTS


@pytest.mark.parametrize(
    ("one", "acts"),
    [
        (delta("insert", "owner", 1), False),
        (delta("update", "owner", 1, name=5), False),
        (delta("delete", "owner", 1), True),
        (delta("update", "owner", 1, id=2), False),  # the foreign key acts on deletes alone
    ],
)
def test_a_delta_acts_when_the_target_may_change_other_rows(one: Delta, acts: bool) -> None:
    assert OWNER.acts(one) is acts


operations = st.sampled_from(["insert", "update", "upsert", "delete"])
numbers = st.integers(0, 3)
rows = st.fixed_dictionaries(
    {}, optional={"id": numbers, "owner": numbers, "email": st.sampled_from("ab"), "v": numbers}
)


@given(operations, numbers, rows, rows)
def test_rows_and_unique_values_alone_are_the_first_set(
    op: str, number: int, before: dict[str, Any], row: dict[str, Any]
) -> None:
    one = Delta(
        "t", Operation(op), {"id": number}, {**row, "id": number} if op in ("insert", "upsert") else row, before
    )
    for plan in (PET, TouchedKeys(SHOP, PLAIN).plan("customer")):
        first: set[str] = set()
        alone: set[str] = set()
        plan.add(one, first, set(), set(), set())
        plan.exclusive(one, alone)
        assert alone == first
        if (lone := plan.lone(one)) is not None:
            assert {lone} == first


@pytest.mark.parametrize(
    ("one", "alone"),
    [
        (delta("update", "customer", 1, name="Ann"), True),
        (delta("update", "customer", 1, id=1, name="Ann"), True),
        (
            delta("update", "customer", 1, {"email": "a", "country": "nl"}, id=1, email="a", country="nl", name="Ann"),
            True,
        ),
        (delta("update", "customer", 1, {"id": 2}, id=2), False),  # the key is what finds the row
        (delta("update", "customer", 1, id=2), False),
        (delta("update", "customer", 1, id="1"), False),  # spelled otherwise, so it may be another value
        (delta("update", "customer", 1, email="a"), False),
        (delta("update", "customer", 1, {"email": "b"}, email="a"), False),
        (delta("update", "customer", 1, {"country": "nl"}, country="be"), False),
        (delta("delete", "customer", 1), False),
    ],
)
def test_an_update_touches_its_row_alone_where_no_column_of_a_key_changes(one: Delta, alone: bool) -> None:
    plan = TouchedKeys(SHOP, PLAIN).plan("customer")

    assert plan.touches_row_alone(one) is alone
    if alone:
        assert added(plan, one) == {"rows": {"row"}}


@given(numbers, rows, rows)
def test_a_column_that_keeps_its_value_adds_nothing(number: int, before: dict[str, Any], row: dict[str, Any]) -> None:
    old = {**before, "id": number}
    changed = {name: value for name, value in row.items() if name not in old or old[name] != value}
    told, short = (Delta("t", Operation.UPDATE, {"id": number}, written, before) for written in (row, changed))
    for plan in (PET, OWNER, TouchedKeys(SHOP, PLAIN).plan("customer")):
        assert added(plan, told) == added(plan, short)


def test_a_table_outside_the_catalogue_has_no_plan() -> None:
    with pytest.raises(DeltaError, match="table 'horse' is not in the target's catalogue"):
        TouchedKeys(PETS, PLAIN).plan("horse")
