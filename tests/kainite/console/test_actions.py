"""Forms become operations, or are refused."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import LATEST, Checkpoint
from kainite.base.errors import LogRequestError
from kainite.console.actions import TITLES, as_sent, exact, operation_of
from kainite.log.state.unit_filter import UnitFilter
from kainite.operations.operation import (
    ChangeDuty,
    CorrectUnit,
    DiscardUnits,
    DutyChange,
    MoveDuty,
    MoveLease,
    PauseApply,
    ResetCheckpoints,
    RestartChild,
    RetryUnits,
    SetDormancy,
    SkipNumbers,
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
    assert operation_of({"do": "restart-child", "shard": "s"}) == RestartChild("s")
    assert operation_of({"do": "move-lease", "shard": "s", "worker": "w"}) == MoveLease("s", "w")
    assert operation_of({"do": "dormant", "worker": "w"}) == SetDormancy("w", True)
    fields = {
        "uow": "T", "duty": "d", "worker": "w", "change": "start", "name": "T-2", "deltas": "[]", "number": "3",
        "to": "LATEST", "shard": "s",
    }  # fmt: skip
    assert all(operation_of({"do": name, **fields}) for name in TITLES)


def test_a_correction_keeps_the_digits_of_its_numbers() -> None:
    form = {"do": "correct", "uow": "T", "name": " T-2 ", "deltas": '{"deltas": [{"v": 12345678901234567.89}]}'}
    assert operation_of(form) == CorrectUnit("T", "T-2", '[{"v":"12345678901234567.89"}]')


def test_numbers_and_positions_are_read() -> None:
    assert operation_of({"do": "skip", "number": " 1,017 "}) == SkipNumbers(1017)
    reset = {"do": "reset", "shard": "s", "force": "yes"}
    assert operation_of({**reset, "to": "LATEST"}) == ResetCheckpoints(LATEST, ("s",), force=True)
    assert operation_of({**reset, "to": "sequence", "sequence": "17.2"}) == ResetCheckpoints(
        Checkpoint("17", 2), ("s",), force=True
    )
    assert operation_of({"do": "reset", "to": "at", "at": "1970-01-01T00:01"}) == ResetCheckpoints(60.0)


@pytest.mark.parametrize("text", ["", "T-1", 'a "quoted" name', "a\nb\rc", "\u202egnp.exe", '"', '"x"', "\ud800"])
def test_what_a_page_sends_back_is_what_it_was(text: str) -> None:
    assert as_sent({"uow": exact(text)}) == {"uow": text}


def test_what_a_person_typed_has_line_feeds() -> None:
    assert as_sent({"why": "a\r\nb", "name": '"x'}) == {"why": "a\nb", "name": '"x'}


@pytest.mark.parametrize(
    "form",
    [
        {"do": "skip", "number": "many"}, {"do": "correct", "uow": "T", "name": "x", "deltas": "7"},
        {"do": "correct", "uow": "T", "deltas": "[]"}, {"do": "correct", "uow": "T", "name": "x", "deltas": "["},
        {"do": "reset"}, {"do": "reset", "to": "sequence", "sequence": "1"}, {"do": "reset", "to": "at", "at": "soon"},
        {"do": "reset", "to": "at", "at": "2999-01-01"},
        {"do": "reset", "to": "sequence", "shard": "s", "sequence": "x"},
        {}, {"do": "format"}, {"do": "retry"}, {"do": "discard", "filter": "{"}, {"do": "retry", "filter": '{"x":1}'},
        {"do": "duty", "duty": "d", "change": "x"}, {"do": "duty", "change": "stop"}, {"do": "move", "duty": "d"},
    ],
)  # fmt: skip
def test_a_form_that_was_made_by_hand_is_refused(form: dict[str, str]) -> None:
    with pytest.raises(LogRequestError):
        operation_of(form)
