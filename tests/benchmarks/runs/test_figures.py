"""Figures are found in any benchmark's JSON, and two commits differ where chance does not explain it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs.figures import LEAST_TURNS, chance_of, differences, figures, parsed

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"a": 1, "b": {"c": 2.5}}, {"a": 1.0, "b/c": 2.5}),
        ([{"mix": "tpcb", "us": 3}, {"mix": "orders", "us": 4}], {"tpcb/us": 3.0, "orders/us": 4.0}),
        ([{"shards": 8, "busy": True, "n": 1}], {"8 True/shards": 8.0, "8 True/n": 1.0}),
        ([{"name": "a", "rate": 0.0, "busy": {"jvm": 0.5}}], {"a 0/rate": 0.0, "a 0/busy/jvm": 0.5}),
        ([5, [6]], {"0": 5.0, "1/0": 6.0}),
        ({"text": "1", "none": None, "yes": True}, {}),
    ],
)
def test_figures_have_the_path_that_leads_to_them(found: Any, expected: dict[str, float]) -> None:
    assert figures(found) == expected


def test_a_benchmark_prints_one_document_or_one_a_line() -> None:
    assert parsed('{"a": 1}\n') == {"a": 1}
    assert parsed('{"a": 1}\n\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]
    with pytest.raises(json.JSONDecodeError):
        parsed("no JSON")


@given(st.lists(NUMBERS, min_size=LEAST_TURNS, max_size=8))
def test_equal_figures_differ_by_chance(row: list[float]) -> None:
    assert chance_of(row, row) == 1.0


@given(st.lists(st.tuples(NUMBERS, st.floats(0.5, 100)), min_size=LEAST_TURNS, max_size=8))
def test_a_win_in_each_turn_is_no_chance(pairs: list[tuple[float, float]]) -> None:
    before, after = [one for one, _ in pairs], [one + more for one, more in pairs]
    assert chance_of(before, after) == chance_of(after, before) == 2 / 2 ** len(pairs) <= 0.05


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=LEAST_TURNS, max_size=8), st.randoms())
def test_the_order_of_turns_does_not_matter(pairs: list[tuple[float, float]], random: Any) -> None:
    mixed = random.sample(pairs, len(pairs))
    one, other = (chance_of([a for a, _ in rows], [b for _, b in rows]) for rows in (pairs, mixed))
    assert one == pytest.approx(other, abs=2 / 2 ** len(pairs))


def test_what_changed_is_told_from_noise() -> None:
    noise = [1.0, 1.2, 0.9, 1.1, 1.0, 1.3]
    before = [{"units": 20.0, "slow": 10 + one, "same": one, "gone": 1.0} for one in noise]
    after = [{"units": 20.0, "slow": 5 + one, "same": one, "new": 1.0} for one in reversed(noise)]
    slow, same = differences(before, after)
    assert (slow.figure, slow.is_real, round(slow.change, 1)) == ("slow", True, -0.5)
    assert (same.figure, same.is_real) == ("same", False)
