"""Units that a filter selects: of each kind that is given, one value must fit."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogRequestError
from kainite.log.state.unit_filter import UnitFilter, filter_from
from kainite.log.views.unit_table import LogRow

ROW = LogRow(
    "T-17",
    status="failed",
    signature=["orders(1)", "sales.line(1, 2)"],
    cause="violates check Positive",
    arrived_ms=1_000,
)


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (UnitFilter(), True),
        (UnitFilter(statuses=("failed",)), True),
        (UnitFilter(statuses=("committed", "blocked")), False),
        (UnitFilter(tables=("sales.line",)), True),
        (UnitFilter(tables=("line",)), False),
        (UnitFilter(causes=("positive",)), True),
        (UnitFilter(causes=("negative", "POSITIVE")), True),
        (UnitFilter(causes=("negative",)), False),
        (UnitFilter(names=("T-1?", "U")), True),
        (UnitFilter(names=("T-1",)), False),
        (UnitFilter(since_ms=1_000, until_ms=1_001), True),
        (UnitFilter(since_ms=1_001), False),
        (UnitFilter(until_ms=1_000), False),
        (UnitFilter(("failed",), ("orders",), ("T*",), ("check",)), True),
        (UnitFilter(("failed",), ("customers",), ("T*",), ("check",)), False),
    ],
)
def test_each_kind_that_is_given_must_fit(wanted: UnitFilter, taken: bool) -> None:
    assert wanted.takes(ROW) is taken


def test_a_unit_without_a_cause_has_no_piece_of_one() -> None:
    assert not UnitFilter(causes=("x",)).takes(LogRow("T"))


def test_a_unit_without_a_time_fits_no_range_of_times() -> None:
    assert not UnitFilter(since_ms=0).takes(LogRow("T"))


def test_a_filter_comes_out_of_a_request_as_it_went_in() -> None:
    wanted = UnitFilter(("failed",), ("orders",), ("T*",), ("a, b",), 1, 2)
    assert filter_from(wanted.as_text()) == wanted
    assert UnitFilter().as_text() == "{}"


@pytest.mark.parametrize("text", ["", "[]", '{"statuses": 7}', '{"colour": ["red"]}', '{"names":[{}]}'])
def test_what_is_no_filter_selects_nothing(text: str) -> None:
    with pytest.raises(LogRequestError, match="is no filter of units"):
        filter_from(text)


def test_a_filter_in_words() -> None:
    assert UnitFilter(tables=("a", "b"), causes=("23503",)).in_words() == "table a or b, cause 23503"
    assert UnitFilter().in_words() == "all"
