"""Forms become operations, or are refused."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogRequestError
from kainite.console.actions import TITLES, operation_of
from kainite.log.state.unit_filter import UnitFilter
from kainite.operations.operation import (
    ChangeDuty,
    DiscardUnits,
    DutyChange,
    MoveDuty,
    PauseApply,
    RetryUnits,
    SetDormancy,
)

FILTER = UnitFilter(causes=("23503",))


def test_units_are_named_or_selected() -> None:
    assert operation_of({"do": "retry", "uow": "T-1", "filter": FILTER.as_text()}) == RetryUnits(("T-1",))
    assert operation_of({"do": "retry", "filter": FILTER.as_text()}) == RetryUnits((), FILTER)


def test_a_discard_of_what_a_filter_selects_has_the_number_that_was_confirmed() -> None:
    form = {"do": "discard", "filter": FILTER.as_text()}
    assert operation_of({**form, "sure": "17"}) == DiscardUnits((), FILTER, 17)
    assert operation_of({**form, "sure": "many"}) == DiscardUnits((), FILTER, None)
    assert operation_of({"do": "discard", "uow": "T", "sure": "1"}) == DiscardUnits(("T",))


def test_the_other_operations() -> None:
    assert operation_of({"do": "pause"}) == PauseApply()
    assert operation_of({"do": "duty", "duty": "log", "change": "stop"}) == ChangeDuty("log", DutyChange.STOP)
    assert operation_of({"do": "move", "duty": "log", "worker": "w"}) == MoveDuty("log", "w")
    assert operation_of({"do": "dormant", "worker": "w"}) == SetDormancy("w", True)
    fields = {"uow": "T", "duty": "d", "worker": "w", "change": "start"}
    assert all(operation_of({"do": name, **fields}) for name in TITLES)


@pytest.mark.parametrize(
    "form",
    [
        {}, {"do": "format"}, {"do": "retry"}, {"do": "discard", "filter": "{"}, {"do": "retry", "filter": '{"x":1}'},
        {"do": "duty", "duty": "d", "change": "x"}, {"do": "duty", "change": "stop"}, {"do": "move", "duty": "d"},
    ],
)  # fmt: skip
def test_a_form_that_was_made_by_hand_is_refused(form: dict[str, str]) -> None:
    with pytest.raises(LogRequestError):
        operation_of(form)
