"""Names of units tell where their transactions stand."""

from __future__ import annotations

from kainite.capture.places import commit_place_of, format_place, repair_name


def test_units_of_both_extractors_have_a_place_and_those_of_others_none() -> None:
    names = ("my-0-7-42-17", "pg-754-0/10", "my-order-17", "my-0-7-42", "any")
    assert [commit_place_of(name) for name in names] == [17, 16, None, None, None]


def test_what_came_late_has_the_place_of_its_transaction() -> None:
    names = ("my-0-7-42-17+late", "my-0-7-42-17+late2", "pg-754-0/10+late", "any+late")
    assert [commit_place_of(name) for name in names] == [17, 17, 16, None]


def test_a_repair_has_the_place_of_its_point() -> None:
    run = "repair-20261123T101112Z-0af9"
    names = (repair_name(run, 17), f"{run}-0/10", f"{run}-17", "repair-my-17")
    assert [commit_place_of(name) for name in names] == [17, 16, None, None]


def test_a_place_is_told_as_its_source_counts() -> None:
    assert format_place(17, "mariadb-7/shop") == "transaction 16"
    assert format_place(17, "7300123/shop") == "0/11"
    assert format_place(17, None) == "0/11"
