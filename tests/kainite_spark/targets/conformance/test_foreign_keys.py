"""Foreign-key order: parents first on insert, children first on delete, in whatever order deltas come."""

from __future__ import annotations

import pytest

from support.stores import Database, Store, Stores


def test_five_levels_arrive_children_first_and_leave_parents_first(shop: Store) -> None:
    rows = [
        shop.insert("shipment", id=1, order_id=7, line_no=1),
        shop.insert("order_line", order_id=7, line_no=1, qty=1),
        shop.insert("orders", id=7, customer_id=7),
        shop.insert("customer", id=7, region_id=7),
        shop.insert("region", id=7, name="seven"),
    ]
    gone = [
        shop.delete("region", id=7),
        shop.delete("customer", {"region_id": 7}, id=7),
        shop.delete("orders", {"customer_id": 7}, id=7),
        shop.delete("order_line", {}, order_id=7, line_no=1),
        shop.delete("shipment", {"order_id": 7, "line_no": 1}, id=1),
    ]
    assert shop.statuses(shop.unit(1, *rows)) == ["committed"]
    assert len(shop.rows("shipment")) == 1
    assert shop.statuses(shop.unit(2, *gone)) == ["committed"]
    assert [len(shop.rows(table)) for table in ("region", "customer", "orders", "order_line", "shipment")] == [
        1,
        1,
        1,
        0,
        0,
    ]


def test_a_table_that_references_itself_goes_row_by_row(shop: Store) -> None:
    chain = [shop.insert("customer", id=number, region_id=1, referrer=number - 1) for number in range(9, 1, -1)]
    with_email = shop.insert("customer", id=10, region_id=1, referrer=9, email="ten@x")
    under_it = shop.insert("customer", id=11, region_id=1, referrer=10)
    assert shop.statuses(shop.unit(1, under_it, with_email, *chain)) == ["committed"]
    gone = [shop.delete("customer", {"region_id": 1, "referrer": n - 1}, id=n) for n in range(2, 12)]
    assert shop.statuses(shop.unit(2, *gone)) == ["committed"]
    assert [row[0] for row in shop.rows("customer")] == [1]


def test_a_row_may_reference_itself(shop: Store) -> None:
    born = shop.unit(1, shop.insert("customer", id=2, region_id=1, referrer=2))
    gone = shop.unit(2, shop.delete("customer", {"region_id": 1, "referrer": 2}, id=2))
    assert shop.statuses(born, gone) == ["committed"] * 2


def test_a_parent_deleted_and_inserted_again_keeps_its_new_children(stores: Stores) -> None:
    store = stores.open("""
        CREATE TABLE doc (id bigint PRIMARY KEY, title text);
        CREATE TABLE part (id bigint PRIMARY KEY, doc_id bigint NOT NULL REFERENCES doc ON DELETE CASCADE);
    """)
    setup = store.unit(1, store.insert("doc", id=1, title="a"), store.insert("part", id=1, doc_id=1))
    again = store.unit(
        2,
        store.delete("part", {"doc_id": 1}, id=1),
        store.delete("doc", id=1),
        store.insert("doc", id=1, title="b"),
        store.insert("part", id=2, doc_id=1),
    )
    assert store.statuses(setup, again) == ["committed"] * 2
    assert store.rows("part") == [(2, 1)]


def test_children_that_take_two_steps_are_gone_before_their_parent(shop: Store) -> None:
    setup = [shop.insert("orders", id=2, customer_id=1), shop.insert("order_line", order_id=2, line_no=1, qty=1)]
    gone = [
        shop.update("order_line", {"order_id": 2, "line_no": 1}, qty=0),
        shop.delete("order_line", order_id=2, line_no=1),
        shop.delete("orders", {"customer_id": 1}, id=2),
    ]
    assert shop.statuses(shop.unit(1, *setup), shop.unit(2, *gone)) == ["committed"] * 2


@pytest.mark.parametrize("database", ["postgresql", "sqlite", "exec", "made up"], indirect=True)
def test_tables_in_a_cycle_are_checked_at_the_commit(stores: Stores) -> None:
    store = stores.open(_cycle(stores.database))
    good = store.unit(1, store.insert("team", id=1, lead=1), store.insert("member", id=1, team_id=1))
    bad = store.unit(2, store.insert("team", id=2, lead=99))
    after = store.unit(3, store.insert("member", id=2, team_id=1))
    assert store.statuses(good, bad, after) == ["committed", "failed", "committed"]
    assert store.rows("team") == [(1, 1)]


def _cycle(database: Database) -> str:
    # A loader defers no constraint itself: its tables say when they are checked.
    deferred = f"DEFERRABLE INITIALLY {'DEFERRED' if database.target.startswith('exec:') else 'IMMEDIATE'}"
    inline = f"REFERENCES member {deferred}" if database.kind == "sqlite" else ""
    later = (
        "" if database.kind == "sqlite" else f"ALTER TABLE team ADD FOREIGN KEY (lead) REFERENCES member {deferred};"
    )
    return f"""
        CREATE TABLE team (id bigint PRIMARY KEY, lead bigint NOT NULL {inline});
        CREATE TABLE member (id bigint PRIMARY KEY, team_id bigint NOT NULL REFERENCES team {deferred});
        {later}
    """
