"""A target applies the deltas of units."""

from __future__ import annotations

import pytest

from support.stores import Store, Stores


def test_rows_and_acknowledgement_come_together(shop: Store) -> None:
    unit = shop.unit(7, shop.insert("audit", what="x", at=1), shop.insert("orders", id=2, customer_id=1))
    assert shop.statuses(unit) == ["committed"]
    assert shop.rows("audit") == [("x", 1)]
    assert shop.database.rows("SELECT log_partition, uow FROM kainite_applied WHERE transaction_id = 7") == [
        ("0", "T-7")
    ]


def test_nothing_of_a_failed_unit_stays(shop: Store) -> None:
    unit = shop.unit(7, shop.insert("audit", what="x", at=1), shop.insert("orders", id=1, customer_id=1))
    assert shop.statuses(unit) == ["failed"]
    assert shop.rows("audit") == []
    assert shop.acknowledged() == [0]


def test_a_unit_applied_before_is_recognised(shop: Store) -> None:
    first, second = (shop.unit(tid, shop.insert("audit", what="x", at=tid)) for tid in (1, 2))
    assert shop.statuses(first) == ["committed"]
    assert shop.statuses(first, second) == ["committed", "committed"]
    assert shop.rows("audit") == [("x", 1), ("x", 2)]


def test_absent_columns_get_their_defaults_and_keep_their_values(shop: Store) -> None:
    new = shop.unit(1, shop.insert("customer", id=2, region_id=1))
    changed = shop.unit(2, shop.update("customer", {"id": 2}, email="b@x"))
    assert shop.statuses(new, changed) == ["committed"] * 2
    assert shop.rows("customer")[1] == (2, 1, "b@x", None, 100)


def test_upsert_inserts_and_updates(shop: Store) -> None:
    rows = [shop.upsert("region", id=number, name=f"r{number}") for number in (1, 2, 3)]
    assert shop.statuses(shop.unit(1, *rows)) == ["committed"]
    assert shop.rows("region") == [(1, "r1"), (2, "r2"), (3, "r3")]


def test_upsert_of_nothing_but_the_key(stores: Stores) -> None:
    store = stores.open("CREATE TABLE tag (id bigint PRIMARY KEY)")
    assert store.statuses(store.unit(1, store.upsert("tag", id=1)), store.unit(2, store.upsert("tag", id=1))) == [
        "committed",
        "committed",
    ]
    assert store.rows("tag") == [(1,)]


def test_a_key_can_change_and_be_used_at_once(shop: Store) -> None:
    unit = shop.unit(
        1,
        shop.insert("region", id=5, name="five"),
        shop.update("region", {"id": 5}, id=6, name="six"),
        shop.update("region", {"id": 6}, name="SIX"),
        shop.insert("customer", id=9, region_id=6),
    )
    assert shop.statuses(unit) == ["committed"]
    assert shop.rows("region") == [(1, "north"), (6, "SIX")]


def test_part_of_a_composite_key_can_change(shop: Store) -> None:
    lines = [shop.insert("order_line", order_id=1, line_no=number, qty=number) for number in (1, 2, 3)]
    moved = shop.update("order_line", {"order_id": 1, "line_no": 2}, line_no=20, qty=5)
    gone = shop.delete("order_line", order_id=1, line_no=3)
    assert shop.statuses(shop.unit(1, *lines), shop.unit(2, moved, gone)) == ["committed"] * 2
    assert shop.rows("order_line") == [(1, 1, 1), (1, 20, 5)]


def test_an_update_that_repeats_its_key_changes_the_rest(shop: Store) -> None:
    unit = shop.unit(1, shop.update("region", {"id": 1}, id=1, name="south"))
    assert shop.statuses(unit) == ["committed"]
    assert shop.rows("region") == [(1, "south")]


def test_an_update_of_nothing_but_an_unchanged_key_needs_its_row(shop: Store) -> None:
    units = [shop.unit(tid, shop.update("region", {"id": tid}, id=tid)) for tid in (1, 2)]
    assert shop.statuses(*units) == ["committed", "failed"]


def test_a_row_touched_many_times_in_a_unit_ends_as_the_source_left_it(shop: Store) -> None:
    unit = shop.unit(
        1,
        shop.insert("region", id=2, name="a"),
        shop.update("region", {"id": 2}, name="b"),
        shop.delete("region", id=2),
        shop.insert("region", id=2, name="c"),
        shop.update("region", {"id": 2}, name="d"),
        shop.upsert("region", id=2, name="e"),
    )
    assert shop.statuses(unit) == ["committed"]
    assert shop.rows("region") == [(1, "north"), (2, "e")]


def test_conflicting_units_of_a_group_come_in_log_order(shop: Store) -> None:
    units = [shop.unit(tid, shop.update("region", {"id": 1}, name=f"n{tid}")) for tid in range(1, 9)]
    assert set(shop.statuses(*units)) == {"committed"}
    assert shop.rows("region") == [(1, "n8")]


def test_a_child_follows_its_parent_within_a_group(shop: Store) -> None:
    units = [
        shop.unit(1, shop.insert("region", id=2, name="new")),
        shop.unit(2, shop.insert("customer", id=2, region_id=2)),
        shop.unit(3, shop.delete("customer", {"id": 2, "region_id": 2}, id=2)),
        shop.unit(4, shop.delete("region", id=2)),
    ]
    assert shop.statuses(*units) == ["committed"] * 4
    assert shop.rows("region") == [(1, "north")]


def test_unique_values_swap_in_one_unit(shop: Store) -> None:
    setup = shop.unit(1, shop.insert("customer", id=2, region_id=1, email="b@x"))
    swap = shop.unit(
        2,
        shop.update("customer", {"id": 1}, {"email": "a@x"}, email="tmp"),
        shop.update("customer", {"id": 2}, {"email": "b@x"}, email="a@x"),
        shop.update("customer", {"id": 1}, {"email": "tmp"}, email="b@x"),
    )
    assert shop.statuses(setup, swap) == ["committed"] * 2
    assert [(row[0], row[2]) for row in shop.rows("customer")] == [(1, "b@x"), (2, "a@x")]


def test_a_unique_value_changes_hands_without_before_by_the_source_order(shop: Store) -> None:
    handover = shop.unit(
        1,
        shop.update("customer", {"id": 1}, email=None),
        shop.insert("customer", id=2, region_id=1, email="a@x"),
    )
    others = [shop.unit(tid, shop.insert("audit", what="x", at=tid)) for tid in (2, 3, 4)]
    assert shop.statuses(handover, *others) == ["committed"] * 4
    assert [(row[0], row[2]) for row in shop.rows("customer")] == [(1, None), (2, "a@x")]


def test_a_table_without_a_key_takes_the_same_row_twice(shop: Store) -> None:
    unit = shop.unit(1, shop.insert("audit", what="x", at=1), shop.insert("audit", what="x", at=1))
    assert shop.statuses(unit) == ["committed"]
    assert shop.rows("audit") == [("x", 1), ("x", 1)]


def test_awkward_names(stores: Stores) -> None:
    store = stores.open('CREATE TABLE "odd ""%s"" table" ("a b" bigint PRIMARY KEY, "100%" text, "select" text)')
    name = 'odd "%s" table'
    inserted = store.unit(1, store.insert(name, **{"a b": 1, "100%": "x", "select": "y"}))
    changed = store.unit(2, store.update(name, {"a b": 1}, **{"a b": 2, "100%": "z"}))
    upserted = store.unit(3, store.upsert(name, **{"a b": 2, "select": "w"}), store.upsert(name, **{"a b": 3}))
    gone = store.unit(4, store.delete(name, **{"a b": 3}))
    assert store.statuses(inserted, changed, upserted, gone) == ["committed"] * 4
    assert store.database.rows('SELECT * FROM "odd ""%s"" table"') == [(2, "z", "w")]


@pytest.mark.parametrize("group_units", [1, 500])
def test_a_unit_of_ten_thousand_deltas(shop: Store, group_units: int) -> None:
    lines = [shop.insert("order_line", order_id=1, line_no=number, qty=1) for number in range(6_000)]
    changes = [shop.update("order_line", {"order_id": 1, "line_no": number}, qty=2) for number in range(3_000)]
    gone = [shop.delete("order_line", order_id=1, line_no=number) for number in range(1_000)]
    other = shop.unit(2, shop.insert("audit", what="x", at=1))
    assert shop.statuses(shop.unit(1, *lines, *changes, *gone), other, group_units=group_units) == ["committed"] * 2
    counted = shop.database.rows("SELECT count(*), sum(qty) FROM order_line")
    assert [tuple(map(int, row)) for row in counted] == [(5_000, 7_000)]


def test_a_table_that_is_called_excluded(stores: Stores) -> None:
    store = stores.open("CREATE TABLE excluded (id bigint PRIMARY KEY, v integer)")
    units = [store.unit(1, store.insert("excluded", id=1, v=1)), store.unit(2, store.upsert("excluded", id=1, v=2))]
    assert store.statuses(*units) == ["committed"] * 2
    assert store.rows("excluded") == [(1, 2)]
