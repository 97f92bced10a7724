"""One unit as its page shows it."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.console.unit_view import (
    MOST_CHARACTERS,
    beside_target,
    changed_deltas,
    delta_views,
    shown_deltas,
    spoken_exactly,
    timeline,
)
from kainite.log.views.unit_table import LogRow
from kainite.settings import RowDisplay

UPDATE: dict[str, Any] = {
    "table": "t", "op": "update", "ordinal": 3,
    "key": {"id": 1}, "row": {"id": 1, "v": "new", "n": None}, "before": {"v": "old"},
}  # fmt: skip


def cells(delta: dict[str, Any], display: RowDisplay = RowDisplay.FULL) -> list[tuple[Any, ...]]:
    (view,) = delta_views([delta], display)
    return [
        (each.name, each.old and each.old.text, each.new and each.new.text, each.is_changed) for each in view.columns
    ]


def test_an_update_has_old_values_beside_new_ones() -> None:
    assert cells(UPDATE) == [("id", "1", "1", False), ("v", "old", "new", True), ("n", None, "null", False)]


def test_an_insert_has_no_old_values_and_a_delete_no_new_ones() -> None:
    assert cells({"table": "t", "op": "insert", "key": {"id": 1}, "row": {"v": 2}}) == [
        ("id", None, "1", False),
        ("v", None, "2", False),
    ]
    assert cells({"table": "t", "op": "delete", "key": {"id": 1}, "before": {"v": 2}}) == [
        ("id", "1", None, False),
        ("v", "2", None, False),
    ]


def test_a_long_value_is_cut_and_says_so() -> None:
    (view,) = delta_views([{"table": "t", "op": "insert", "row": {"v": "x" * 1_000_000}}], RowDisplay.FULL)
    shown = view.columns[0].new
    assert shown is not None
    assert (len(shown.text), shown.characters, shown.is_cut) == (MOST_CHARACTERS, 1_000_000, True)


@pytest.mark.parametrize("display", [RowDisplay.MASKED, RowDisplay.NONE])
def test_masked_values_stand_nowhere(display: RowDisplay) -> None:
    secret = "4711-and-more"
    delta = {
        "table": "t",
        "op": "insert",
        "key": {"id": secret},
        "row": {"v": [secret], "w": secret, "n": 12.5, "b": True},
    }
    for shown in (repr(delta_views([delta], display)), repr(shown_deltas([delta], display))):
        assert secret not in shown
        assert "12.5" not in shown
        assert ("'w'" in shown) == (display is RowDisplay.MASKED)


def test_a_delta_of_another_form_is_shown_as_far_as_it_goes() -> None:
    assert cells({"table": "t", "op": "insert", "key": [1], "row": "x"}) == []
    assert shown_deltas([UPDATE], RowDisplay.FULL) == [UPDATE]


def test_the_timeline_tells_what_is_not_known_from_what_has_not_happened() -> None:
    row = LogRow("T", collected_ms=1_000, dispatched_ms=1_250)
    assert [(each.name, each.after, each.done) for each in timeline(row)] == [
        ("committed at the source", "", True), ("arrived on the stream", "", True), ("collected", "", True),
        ("dispatched", "250 ms", True), ("applied", "", False),
    ]  # fmt: skip


def test_clocks_that_differ_give_negative_times() -> None:
    assert spoken_exactly(-0.02) == "-20 ms"
    assert spoken_exactly(75.4) == "75 s"


def test_a_correction_stands_beside_what_it_replaces() -> None:
    before: list[dict[str, Any]] = [
        {"table": "t", "op": "update", "key": {"id": 1}, "row": {"v": 1, "w": 2}},
        {"table": "u", "op": "delete"},
    ]
    after = [{"table": "t", "op": "upsert", "key": {"id": 1}, "row": {"v": 5}}]
    changed, left_out = changed_deltas(before, after)
    shown = {
        each.name: (each.old and each.old.text, each.new and each.new.text, each.is_changed) for each in changed.columns
    }
    assert shown == {
        "op": ("update", "upsert", True),
        "key id": ("1", "1", False),
        "row v": ("1", "5", True),
        "row w": ("2", None, True),
    }
    assert (changed.operation, left_out.operation, left_out.table) == ("upsert", "left out", "u")
    (added,) = changed_deltas([], [{"table": "t", "op": "insert", "row": {"v": None}}])
    assert [(each.name, each.old, each.new and each.new.text) for each in added.columns][-1] == ("row v", None, "null")
    assert changed_deltas([], [7])[0].columns == ()


def test_a_delta_stands_beside_the_targets_row() -> None:
    deltas: list[dict[str, Any]] = [
        {"table": "t", "op": "update", "key": {"id": 1}, "row": {"v": 2, "w": "x"}},
        {"table": "t", "op": "delete", "key": {"id": 2}},
    ]
    here, gone = beside_target(deltas, [{"id": "1", "v": "3", "w": "x", "more": None}, None])
    shown = {
        each.name: (each.old and each.old.text, each.new and each.new.text, each.is_changed) for each in here.columns
    }
    assert shown == {
        "id": ("1", "1", False), "v": ("3", "2", True), "w": ("x", "x", False), "more": ("null", None, False),
    }  # fmt: skip
    assert [(each.name, each.old, each.new) for each in gone.columns] == [("id", None, None)]
