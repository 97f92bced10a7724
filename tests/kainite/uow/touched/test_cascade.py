"""How far foreign keys with actions reach: over which tables a delete or a changed value goes on by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.uow.catalogue.tables import Catalogue, ForeignKey, ReferentialAction, UniqueKey
from kainite.uow.touched.cascade import Cascades, Reach, reference_of
from kainite.uow.touched.family import families
from support.tables import CASCADE, INTEGER, PETS, acting, catalogue, columns, foreign_key, table

OWNER, PET = ("owner", ("id",)), ("pet", ("id",))
NOWHERE = Reach(frozenset(), frozenset(), frozenset())


def cascades(tables: Catalogue) -> Cascades:
    return Cascades(families(tables).values())


def two_levels(first: ForeignKey, second: ForeignKey) -> Cascades:
    return cascades(
        catalogue(
            table("owner", columns(id=INTEGER)),
            table("pet", columns(id=INTEGER, owner=INTEGER), ("id",), first),
            table("toy", columns(id=INTEGER, pet=INTEGER), ("id",), second),
        )
    )


def test_below_the_direct_children_the_whole_is_reached() -> None:
    found = cascades(PETS)

    assert found.on_delete == {OWNER: replace(NOWHERE, wholes=frozenset({PET})), PET: NOWHERE}
    assert found.on_change == {}
    assert found.guarded == {PET}


def test_without_actions_nothing_is_reached() -> None:
    found = two_levels(foreign_key(("owner",), "owner", ("id",)), foreign_key(("pet",), "pet", ("id",)))

    assert (found.on_delete, found.on_change, found.guarded) == ({}, {}, frozenset())


@pytest.mark.parametrize(
    ("action", "goes_on"),
    [(CASCADE, True), (ReferentialAction.SET_NULL, False), (ReferentialAction.SET_DEFAULT, False)],
)
def test_only_what_deletes_goes_on_to_children_that_name_the_rows_key(action: ReferentialAction, goes_on: bool) -> None:
    found = two_levels(acting("owner", "owner", action), acting("pet", "pet", CASCADE))

    assert (PET in found.on_delete[OWNER].wholes) is goes_on


def test_a_default_moves_children_to_a_parent_that_is_not_known() -> None:
    found = two_levels(acting("owner", "owner", ReferentialAction.SET_DEFAULT), foreign_key(("pet",), "pet", ("id",)))

    assert found.on_delete == {OWNER: Reach(frozenset({OWNER}), frozenset({OWNER}), frozenset())}
    assert OWNER in found.guarded


def test_a_changed_value_goes_on_where_the_changed_column_is_named_again() -> None:
    first, second = acting("owner", "owner", CASCADE, CASCADE), acting("owner", "pet", CASCADE, CASCADE, "owner")
    tables = catalogue(
        table("owner", columns(id=INTEGER)),
        table("pet", columns(id=INTEGER, owner=INTEGER), ("id",), UniqueKey("u", ("owner",)), first),
        table("toy", columns(id=INTEGER, owner=INTEGER), ("id",), second),
    )

    assert cascades(tables).on_change[OWNER].wholes == {("pet", ("owner",))}


def test_a_circle_of_cascades_ends() -> None:
    found = cascades(
        catalogue(
            table("a", columns(id=INTEGER, b=INTEGER), ("id",), acting("b", "b", CASCADE)),
            table("b", columns(id=INTEGER, a=INTEGER), ("id",), acting("a", "a", CASCADE)),
        )
    )

    both = frozenset({("a", ("id",)), ("b", ("id",))})
    assert {reference: reach.wholes for reference, reach in found.on_delete.items()} == dict.fromkeys(both, both)


def test_a_value_that_a_delete_may_leave_open_is_guarded() -> None:
    """Shows a delete that tells the primary key and not the code, which foreign keys name here."""
    tables = catalogue(
        table("owner", columns(id=INTEGER, code=INTEGER), ("id",), UniqueKey("u", ("code",))),
        table("pet", columns(id=INTEGER, owner=INTEGER), ("id",), acting("owner", "owner", CASCADE, named="code")),
    )

    assert cascades(tables).guarded == {("owner", ("code",))}


def test_a_reference_has_one_order_of_columns() -> None:
    one = foreign_key(("x", "y"), "parent", ("b", "a"))
    other = foreign_key(("y", "x"), "parent", ("a", "b"))

    assert reference_of(one) == reference_of(other) == ("parent", ("a", "b"))
