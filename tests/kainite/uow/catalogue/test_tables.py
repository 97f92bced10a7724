"""The model of the target's tables."""

from __future__ import annotations

import pytest

from kainite.uow.catalogue.tables import Catalogue, ForeignKey, ReferentialAction, Table

ORDERS = Table("orders", "public", {})
SALES = Table("sales.orders", "sales", {})
FILE = Table("line", None, {})


@pytest.mark.parametrize(("table", "name"), [(ORDERS, "orders"), (SALES, "orders"), (FILE, "line")])
def test_a_bare_name_has_no_schema(table: Table, name: str) -> None:
    assert table.bare_name == name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("orders", ORDERS),
        ("public.orders", ORDERS),
        ("sales.orders", SALES),
        ("public.sales.orders", SALES),
        ("orders.public", None),
        ("Orders", None),
    ],
)
def test_a_table_is_found_with_and_without_the_default_schema(name: str, found: Table | None) -> None:
    assert Catalogue({table.name: table for table in (ORDERS, SALES)}, "public").find(name) is found


def test_without_a_default_schema_a_name_is_the_whole_name() -> None:
    assert Catalogue({"sales.orders": SALES}).find("orders") is None
    assert Catalogue({"sales.orders": SALES}).find("sales.orders") is SALES


@pytest.mark.parametrize("action", list(ReferentialAction))
def test_a_foreign_key_acts_unless_both_actions_are_none(action: ReferentialAction) -> None:
    acts = action is not ReferentialAction.NO_ACTION
    assert ForeignKey("k", ("a",), "p", ("id",), on_delete=action).acts is acts
    assert ForeignKey("k", ("a",), "p", ("id",), on_update=action).acts is acts
