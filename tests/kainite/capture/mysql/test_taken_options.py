"""Which options hold from an offset on, and since when tables are read; test_option_changes.py reads a binlog."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.taken_options import OTHERS, OptionsInForce, TakenOptions
from kainite.capture.truncate import OnTruncate

FAIL, SKIP = OnTruncate.FAIL, OnTruncate.SKIP
END = BinlogPlace("binlog.000009", 4711)


@pytest.mark.parametrize(
    ("before", "tables", "after"),
    [
        ({"a": 1}, ["a", "b"], {"a": 1, "b": 9}),
        ({"a": 1, "b": 9}, ["a"], {"a": 1}),  # and b again has a gap
        ({"a": 1}, [], {"a": 1, OTHERS: 9}),
        ({OTHERS: 2}, ["a"], {"a": 2}),
        ({"a": 1, OTHERS: 2}, ["a", "b"], {"a": 1, "b": 2}),
        ({"a": 1, OTHERS: 2}, [], {"a": 1, OTHERS: 2}),
    ],
)
def test_a_table_keeps_its_number_as_long_as_it_is_read(
    before: dict[str, int], tables: list[str], after: dict[str, int]
) -> None:
    assert TakenOptions(before, FAIL).followed(tables, SKIP, 9) == TakenOptions(after, SKIP)


def test_options_are_compared_without_their_order() -> None:
    held = TakenOptions.begun(["a", "b"], FAIL, 3)
    assert held.are(("b", "a"), FAIL)
    assert not held.are(("b", "a"), SKIP)
    assert not held.are((), FAIL)
    assert TakenOptions.begun([], FAIL, 3).are((), FAIL)


def test_the_processs_own_options_hold_behind_what_stood_in_the_binlog_when_it_began() -> None:
    one = OptionsInForce(("b",), SKIP)
    one.begin(TakenOptions({"a": 1}, FAIL), lambda: END)
    assert (one.tables, one.on_truncate) == (("a",), FAIL)
    assert not one.change_at(None)
    assert not one.change_at(BinlogPlace("binlog.000009", 4710))
    assert one.change_at(END)
    one.change(16)
    assert (one.tables, one.on_truncate, one.options) == (("b",), SKIP, TakenOptions({"b": 16}, SKIP))
    assert not one.change_at(END)


def test_options_that_are_the_offsets_change_nothing() -> None:
    one = OptionsInForce(("a",), FAIL)
    one.begin(TakenOptions({"a": 1}, FAIL), lambda: pytest.fail("nobody needs the end of the binlog"))
    assert not one.change_at(END)
    assert one.options == TakenOptions({"a": 1}, FAIL)


def test_where_a_person_begins_the_options_are_noted_before_anything_else() -> None:
    one = OptionsInForce((), FAIL)
    one.begin(None, lambda: END)
    assert one.change_at(None)
    one.change(7)
    assert one.options == TakenOptions({OTHERS: 7}, FAIL)
