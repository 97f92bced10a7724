"""Which keys a table's plan has: its own, those that others name, and its parents'."""

from __future__ import annotations

from dataclasses import replace

from kainite.uow.catalogue.tables import Catalogue, UniqueKey
from kainite.uow.touched.key import PLAIN
from kainite.uow.touched.plan import TablePlan
from kainite.uow.touched.schema import TouchedSchema
from support.tables import CASCADE, INTEGER, PETS, SHOP, TEXT, acting, catalogue, columns, foreign_key, table


def plan(tables: Catalogue, name: str) -> TablePlan[str]:
    return TouchedSchema(tables, PLAIN).plan(name)


def test_a_plan_has_the_tables_keys_what_others_name_and_its_parents() -> None:
    customer = plan(SHOP, "customer")

    assert [key.columns for key in customer.rows] == [{"id"}]
    assert [key.columns for key in customer.unique] == [{"email"}]
    assert {named.key.columns for named in customer.named} == {frozenset({"id"}), frozenset({"email"})}
    assert [parent.key.columns for parent in customer.parents] == [{"country"}]
    assert customer.unclear == frozenset()


def test_parent_and_child_spell_what_they_share_alike() -> None:
    """Compares the customer's number, an integer on both sides, which the child has in a column of another name."""
    [named] = [named for named in plan(SHOP, "customer").named if named.key.columns == {"id"}]
    [parent] = plan(SHOP, "history").parents

    assert parent.key.token({"customer": "07"}) == named.key.token({"id": 7})


def test_columns_of_two_types_are_spelled_so_that_equal_values_meet() -> None:
    tables = catalogue(
        table("parent", columns(code=TEXT), ("code",)),
        table("child", columns(id=INTEGER, code=INTEGER), ("id",), foreign_key(("code",), "parent", ("code",))),
    )
    [named], [parent] = plan(tables, "parent").named, plan(tables, "child").parents

    assert parent.key.token({"code": 7}) == named.key.token({"code": "7"})


def test_a_unique_key_that_deltas_do_not_tell_is_one_token_for_every_delta() -> None:
    computed = table(
        "t", columns(id=INTEGER, a=INTEGER), ("id",), UniqueKey("told", ("a",)), UniqueKey("expression", ())
    )
    of_computed = plan(catalogue(computed), "t")
    generated = replace(computed.columns["a"], generated=True)
    of_generated = plan(catalogue(replace(computed, columns={**computed.columns, "a": generated})), "t")

    assert ([set(key.columns) for key in of_computed.unique], len(of_computed.unclear)) == ([{"a"}], 1)
    assert (of_generated.unique, len(of_generated.unclear)) == ((), 2)


def test_a_foreign_key_to_a_table_outside_the_catalogue_is_left_out() -> None:
    tables = catalogue(table("c", columns(id=INTEGER, p=INTEGER), ("id",), foreign_key(("p",), "elsewhere", ("id",))))

    assert plan(tables, "c").parents == ()


def test_only_a_foreign_key_that_acts_has_a_cascade() -> None:
    assert [parent.cascade for parent in plan(SHOP, "history").parents] == [None]
    assert [parent.cascade is None for parent in plan(PETS, "pet").parents] == [False]
    assert [named.on_delete is None for named in plan(PETS, "owner").named] == [False]
    assert [named.on_change for named in plan(PETS, "owner").named] == [None]


def test_overlaps_are_tables_whose_acting_foreign_keys_share_columns() -> None:
    def tables(second: str) -> Catalogue:
        keys = [acting("p", "one", CASCADE, CASCADE), acting(second, "other", CASCADE, CASCADE)]
        return catalogue(
            table("one", columns(id=INTEGER)),
            table("other", columns(id=INTEGER)),
            table("child", columns(id=INTEGER, p=INTEGER, q=INTEGER), ("id",), *keys),
        )

    assert len(TouchedSchema(tables("p"), PLAIN).overlaps()) == 1
    assert TouchedSchema(tables("q"), PLAIN).overlaps() == frozenset()
