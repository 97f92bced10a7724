"""What foreign keys with actions make of signatures: what they order, and what stays in parallel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.uow.catalogue.tables import ForeignKey, ReferentialAction, Table, UniqueKey
from kainite.uow.delta import Delta, Operation
from support.tables import CASCADE, INTEGER, PETS, acting, catalogue, columns, foreign_key, table
from support.touching import conflicting, delta

CODES = catalogue(
    table("owner", columns(id=INTEGER, code=INTEGER, v=INTEGER), ("id",), UniqueKey("u", ("code",))),
    table(
        "pet",
        columns(id=INTEGER, owner=INTEGER, v=INTEGER),
        ("id",),
        acting("owner", "owner", CASCADE, CASCADE, "code"),
    ),
)


GONE = delta("delete", "owner", 1)
OTHER_OWNERS = [delta("delete", "owner", number) for number in range(2, 40)]


@pytest.mark.parametrize(
    "child",
    [
        delta("update", "pet", 5, owner=2),
        delta("update", "pet", 5, v=1),
        delta("upsert", "pet", 5, owner=2),
        delta("delete", "pet", 5),
        delta("insert", "pet", 5, owner=1),
        delta("update", "pet", 5, {"owner": 1}, v=1),
        delta("update", "pet", 5, {"owner": 2}, owner="1"),
        delta("update", "toy", 5, {"pet": 7}, v=1),
        delta("insert", "toy", 5, pet=7),
    ],
    ids=lambda child: f"{child.op} {child.table} {dict(child.before)} {dict(child.row)}",
)
def test_the_delete_of_a_parent_conflicts_with_what_its_cascade_may_touch(child: Delta) -> None:
    assert conflicting(GONE, child)


@pytest.mark.parametrize(
    "child",
    [
        delta("insert", "pet", 5, owner=2),
        delta("update", "pet", 5, {"owner": 2}, v=1),
        delta("update", "pet", 5, {"owner": 2}, owner=3),
        delta("delete", "pet", 5, {"owner": 2}),
        delta("update", "pet", 5, {"owner": None}, v=1),
        delta("upsert", "owner", 2),
    ],
)
def test_it_does_not_conflict_with_children_that_are_known_to_be_others(child: Delta) -> None:
    assert not conflicting(GONE, child)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (delta("insert", "pet", 5, owner=1), delta("insert", "pet", 6, owner=1)),
        (delta("update", "pet", 5, owner=1), delta("update", "pet", 6, owner=1)),
        (delta("update", "pet", 5, owner=1), delta("insert", "owner", 7)),
        (delta("update", "pet", 5, {"owner": 1}, v=1), delta("upsert", "owner", 1, name=1)),
        (delta("update", "pet", 5, v=1), delta("update", "owner", 1, name=1)),
        (delta("update", "toy", 5, v=1), delta("insert", "pet", 6, owner=1)),
    ],
)
def test_ordinary_traffic_stays_in_parallel(one: Delta, other: Delta) -> None:
    assert not conflicting(one, other)


def test_few_deletes_of_parents_wait_for_each_other() -> None:
    tables = catalogue(*(table for name, table in PETS.tables.items() if name != "toy"))
    assert sum(conflicting(GONE, other, tables) for other in OTHER_OWNERS) < len(OTHER_OWNERS) / 4
    assert not conflicting(GONE, delta("update", "owner", 3, name=1), tables)


def test_an_unknown_code_may_have_any_children() -> None:
    for parent in (
        delta("delete", "owner", 1),
        delta("update", "owner", 1, code=8),
        delta("upsert", "owner", 1, code=8),
    ):
        assert conflicting(parent, delta("insert", "pet", 5, owner=7), CODES)
        assert conflicting(parent, delta("update", "pet", 5, {"owner": 7}, v=1), CODES)
        assert not conflicting(parent, delta("insert", "owner", 2, code=9), CODES)
    told = delta("update", "owner", 1, {"code": 7}, code=8)
    assert conflicting(told, delta("update", "pet", 5, {"owner": 7}, v=1), CODES)
    assert not conflicting(told, delta("update", "pet", 5, {"owner": 6}, v=1), CODES)
    assert not conflicting(delta("update", "owner", 1, v=1), delta("update", "pet", 5, v=1), CODES)


def test_a_default_may_be_any_parent() -> None:
    tables = catalogue(
        table("owner", columns(id=INTEGER)),
        table(
            "pet", columns(id=INTEGER, owner=INTEGER), ("id",), acting("owner", "owner", ReferentialAction.SET_DEFAULT)
        ),
    )
    assert all(conflicting(GONE, other, tables) for other in OTHER_OWNERS)
    assert conflicting(GONE, delta("insert", "pet", 5, owner=9), tables)


def test_foreign_keys_that_share_columns_order_the_deletes_of_their_parents() -> None:
    def parent(name: str) -> Table:
        return table(name, columns(tenant=INTEGER, id=INTEGER), ("tenant", "id"))

    def key(name: str, action: ReferentialAction) -> ForeignKey:
        return replace(foreign_key(("tenant", name), name, ("tenant", "id")), on_delete=action)

    def gone(name: str) -> Delta:
        return Delta(name, Operation.DELETE, {"tenant": 1, "id": 1}, {}, {})

    for action, ordered in ((ReferentialAction.SET_NULL, True), (CASCADE, False)):
        child = table("c", columns(id=INTEGER, tenant=INTEGER, p=INTEGER, q=INTEGER), ("id",), key("p", action))
        child = replace(child, foreign_keys=(*child.foreign_keys, key("q", CASCADE)))
        assert conflicting(gone("p"), gone("q"), catalogue(parent("p"), parent("q"), child)) is ordered
