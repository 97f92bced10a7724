"""A unit that the target refuses fails alone, with the target's message as its cause."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kainite.base.errors import TargetError, TargetRejectedError
from kainite.uow.delta import Delta
from support.stores import DATABASES, Store

BAD: dict[str, Callable[[Store], Delta]] = {
    "check": lambda shop: shop.insert("customer", id=50, region_id=1, credit=-1),
    "unique": lambda shop: shop.insert("customer", id=50, region_id=1, email="a@x"),
    "primary key": lambda shop: shop.insert("customer", id=1, region_id=1),
    "foreign key": lambda shop: shop.insert("customer", id=50, region_id=99),
    "not null": lambda shop: shop.insert("region", id=50, name=None),
    "restricted delete": lambda shop: shop.delete("region", id=1),
    "update of a missing row": lambda shop: shop.update("region", {"id": 404}, name="lost"),
    "delete of a missing row": lambda shop: shop.delete("region", id=404),
    "unknown column": lambda shop: Delta("region", shop.insert("region", id=1).op, {"id": 50}, {"colour": 1}, {}),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_row_fails_its_unit_alone(shop: Store, what: str) -> None:
    good = [shop.unit(tid, shop.insert("audit", what="good", at=tid)) for tid in range(1, 20)]
    delta = BAD[what](shop)
    unit = shop.unit(7, shop.insert("audit", what="bad", at=7))
    bad = type(unit)(7, "T-7", (*unit.deltas, delta))
    units = [bad if unit.tid == 7 else unit for unit in good]
    outcomes = shop.apply(*units)
    assert [outcome.tid for outcome in outcomes if outcome.status != "committed"] == [7]
    assert delta.table in (outcomes[6].cause or "")
    assert "\n" not in (outcomes[6].cause or "")
    assert {what for what, _ in shop.rows("audit")} == {"good"}
    assert shop.acknowledged() == [tid for tid in range(20) if tid != 7]


def test_a_delete_that_may_miss_its_row_fails_no_unit_and_takes_the_row_that_is_there(shop: Store) -> None:
    lenient = replace(shop.delete("region", id=404), may_miss=True)
    shop.apply(shop.unit(1, shop.insert("region", id=2, name="two"), shop.insert("region", id=3, name="three")))
    change = shop.unit(2, lenient, replace(shop.delete("region", id=2), may_miss=True), shop.delete("region", id=3))
    strict = shop.unit(3, lenient, shop.delete("region", id=405))

    outcomes = shop.apply(change, strict)

    assert [outcome.status for outcome in outcomes] == ["committed", "failed"]
    assert "405" in (outcomes[1].cause or "")
    assert [id for id, _ in shop.rows("region")] == [1]


def test_the_cause_of_a_lost_update_names_the_row(shop: Store) -> None:
    change = shop.unit(1, shop.update("region", {"id": 404}, name="lost"), shop.insert("region", id=2, name="two"))
    (outcome,) = shop.apply(change)
    assert outcome.status == "failed"
    assert "404" in (outcome.cause or "")


def test_a_key_that_is_not_the_primary_key_is_refused(shop: Store) -> None:
    units = [
        shop.unit(1, shop.insert("audit", what="x", at=1)),
        shop.unit(2),
        shop.unit(3),
    ]
    by_name = shop.delete("region", name="north")
    without = shop.delete("audit", what="x")
    units[1:] = [type(units[0])(tid, f"T-{tid}", (delta,)) for tid, delta in ((2, by_name), (3, without))]
    causes = [outcome.cause for outcome in shop.apply(*units)]
    assert causes[0] is None
    assert "its key is id" in (causes[1] or "")
    assert "inserts only" in (causes[2] or "")


def test_a_table_that_is_not_there_is_refused(shop: Store) -> None:
    template = shop.unit(1, shop.insert("audit", what="x", at=1))
    lost = Delta("nowhere", template.deltas[0].op, {}, {"a": 1}, {})
    assert "nowhere" in (shop.apply(type(template)(1, "T-1", (lost,)))[0].cause or "")


def test_later_units_of_the_failed_row_wait_and_others_do_not(shop: Store) -> None:
    units = [
        shop.unit(1, shop.update("customer", {"id": 1}, credit=-5)),
        shop.unit(2, shop.update("customer", {"id": 1}, credit=5), shop.insert("region", id=2, name="two")),
        shop.unit(3, shop.insert("customer", id=3, region_id=2)),
        shop.unit(4, shop.insert("region", id=4, name="four")),
    ]
    outcomes = shop.apply(*units)
    assert [outcome.status for outcome in outcomes] == ["failed", "blocked", "blocked", "committed"]
    assert outcomes[1].cause == "waits for unit 1 (T-1), which is failed"
    assert outcomes[2].cause == "waits for unit 2 (T-2), which is blocked"


def test_a_later_unit_is_taken_where_the_failed_one_is_not_given_with_it(shop: Store) -> None:
    # The driver gives units so with onUowFailure=skip, and when a person has discarded the failed unit.
    assert shop.statuses(shop.unit(1, shop.update("customer", {"id": 1}, credit=-5))) == ["failed"]
    assert shop.statuses(shop.unit(2, shop.update("customer", {"id": 1}, credit=5))) == ["committed"]


def test_a_session_that_stops_tries_nothing_after_the_failure(shop: Store) -> None:
    units = [shop.unit(tid, shop.insert("audit", what="x", at=tid)) for tid in range(1, 9)]
    units[3] = shop.unit(4, shop.update("customer", {"id": 1}, credit=-5))
    assert shop.statuses(*units, stops=True) == ["committed"] * 3 + ["failed"]
    assert shop.acknowledged() == [0, 1, 2, 3]


def test_the_session_goes_on_after_a_refusal(shop: Store) -> None:
    bad = shop.unit(1, shop.insert("customer", id=1, region_id=1))
    assert shop.statuses(bad) == ["failed"]
    assert shop.statuses(shop.unit(2, shop.insert("region", id=2, name="two"))) == ["committed"]


@DATABASES
def test_a_missing_table_of_kainites_own_is_no_units_fault(shop: Store) -> None:
    shop.database.run("ALTER TABLE kainite_applied RENAME TO kainite_gone")
    units = [shop.unit(tid, shop.insert("region", id=tid, name="x")) for tid in (2, 3)]
    with pytest.raises(TargetError, match="kainite_applied") as raised:
        shop.apply(*units)
    assert not isinstance(raised.value, TargetRejectedError)
    shop.database.run("ALTER TABLE kainite_gone RENAME TO kainite_applied")
    assert shop.statuses(*units) == ["committed"] * 2
