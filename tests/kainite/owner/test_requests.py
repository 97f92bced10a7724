"""Retry and discard, decided on the log's state."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import Entry, EntryKind, Fault, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.owner.requests import ASKED, OK, REFUSED, RequestDecision, decide
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.signing import SignedDeltas
from kainite.uow.touched.key import ROW
from kainite.uow.touches import Touched

IN_PROGRESS, COMMITTED, FAILED, BLOCKED, DISCARDED, DISCARDING = UnitStatus


def state(*outcomes: Outcome, cause: str | None = None, answered: tuple[str, ...] = ()) -> FoldedLog:
    folded = FoldedLog()
    folded.apply(0, Entry(EntryKind.UNIT, UnitMeta("T", 1, cause=cause, fault=Fault.MALFORMED if cause else None)), 0)
    folded.apply(1, Entry(EntryKind.STATUS, StatusMeta(outcomes, requests=answered)), 0)
    return folded


FAILED_UNIT = state(Outcome(0, FAILED, 3, "bad"))
BLOCKED_UNIT = state(Outcome(0, BLOCKED, None, "waits for S"))
MALFORMED_UNIT = state(cause="two ends disagree")


def collecting(*came: int) -> FoldedLog:
    """Returns a log in which a unit of two deltas failed with one of them; ``came`` are appended later."""
    folded = FoldedLog()
    entries = [
        Entry(EntryKind.FRAGMENT, FragmentMeta("T", "s", 1, (0,), UnitEnd(2))),
        Entry(EntryKind.UNIT, UnitMeta("T", 1, ("s",), (0,), cause="1 of 2 deltas came", fault=Fault.INCOMPLETE)),
        *(Entry(EntryKind.FRAGMENT, FragmentMeta("T", "s", 1, (ordinal,))) for ordinal in came),
    ]
    for tid, entry in enumerate(entries):
        folded.apply(tid, entry, 0)
    return folded


def test_a_unit_whose_parts_came_late_is_applied_again_when_it_is_whole() -> None:
    decision = decide(collecting(1), "r", {"action": "retry", "uow": "T", "by": "me"}, SignedDeltas())
    assert decision.outcome == Outcome(1, IN_PROGRESS, cause="retried by me")


def test_a_unit_whose_correction_may_be_applied_is_not_retried_before_that_has_failed() -> None:
    folded, touched = FoldedLog(), Touched(frozenset({7 | ROW}), tables=("t",), scheme="S")
    folded.apply(0, Entry(EntryKind.UNIT, UnitMeta("T", 1), touched), 0)
    folded.apply(1, Entry(EntryKind.UNIT, UnitMeta("C", 1, kind=UnitKind.CORRECTION), touched), 0)
    folded.apply(2, Entry(EntryKind.STATUS, StatusMeta((Outcome(0, FAILED, cause="bad"),))), 0)
    refused = decide(folded, "r", {"action": "retry", "uow": "T"})
    assert refused.outcome is None
    assert "a correction, C (id 1), which is in progress and may be applied already" in refused.answer["message"]
    folded.apply(3, Entry(EntryKind.STATUS, StatusMeta((Outcome(1, FAILED, cause="bad"),))), 0)
    assert decide(folded, "r", {"action": "retry", "uow": "T"}).outcome is not None


def test_a_unit_that_a_correction_only_may_touch_is_retried() -> None:
    folded, touched = FoldedLog(), Touched(frozenset({7}), tables=("t",), scheme="S")
    folded.apply(0, Entry(EntryKind.UNIT, UnitMeta("T", 1), touched), 0)
    folded.apply(1, Entry(EntryKind.UNIT, UnitMeta("C", 1, kind=UnitKind.CORRECTION), touched), 0)
    outcomes = Outcome(0, FAILED, cause="bad"), Outcome(1, BLOCKED, cause="waits for 0")
    folded.apply(2, Entry(EntryKind.STATUS, StatusMeta(outcomes)), 0)
    assert decide(folded, "r", {"action": "retry", "uow": "T"}).outcome is not None


def test_a_late_number_is_applied_again() -> None:
    folded = FoldedLog()
    folded.apply(0, Entry(EntryKind.UNIT, UnitMeta("T", 1, cause="late", fault=Fault.LATE_NUMBER)), 0)
    assert decide(folded, "r", {"action": "retry", "uow": "T"}, SignedDeltas()).outcome is not None


def test_it_is_not_applied_before_it_is_judged() -> None:
    decision = decide(collecting(1), "r", {"action": "retry", "uow": "T"})
    assert decision.outcome is None
    assert "retry it later" in decision.answer["message"]


CARRIED_OUT = {
    "discard of a unit that still collects": (
        collecting(),
        "discard",
        Outcome(1, DISCARDED, cause="discarded by me"),
        "is discarded",
    ),
    "retry": (FAILED_UNIT, "retry", Outcome(0, IN_PROGRESS, cause="retried by me"), "will be applied again"),
    "discard": (FAILED_UNIT, "discard", Outcome(0, DISCARDED, cause="discarded by me"), "is discarded"),
    "discard of a malformed unit": (
        MALFORMED_UNIT,
        "discard",
        Outcome(0, DISCARDED, cause="discarded by me"),
        "is discarded",
    ),
}


@pytest.mark.parametrize(("folded", "action", "outcome", "message"), CARRIED_OUT.values(), ids=CARRIED_OUT)
def test_carried_out(folded: FoldedLog, action: str, outcome: Outcome, message: str) -> None:
    decision = decide(folded, "r", {"action": action, "uow": "T", "by": "me"})
    assert decision == RequestDecision(outcome, {"result": OK, "message": f"unit T {message}"})


REFUSALS = [
    (state(), {"action": "retry", "uow": "T"}, "unit T is in progress, not failed"),
    (BLOCKED_UNIT, {"action": "retry", "uow": "T"}, "unit T is blocked, not failed: waits for S; resolve that one"),
    (state(Outcome(0, DISCARDING)), {"action": "retry", "uow": "T"}, "unit T is discarding, not failed"),
    (MALFORMED_UNIT, {"action": "retry", "uow": "T"}, "unit T can never be applied (two ends disagree)"),
    (
        collecting(),
        {"action": "retry", "uow": "T"},
        "unit T cannot be applied yet: 1 of its 2 deltas have come; it goes",
    ),
    (state(Outcome(0, COMMITTED)), {"action": "retry", "uow": "T"}, "no unit 'T' is failed or in progress"),
    (FAILED_UNIT, {"action": "retry", "uow": "U"}, "no unit 'U' is failed or in progress"),
    (FAILED_UNIT, {"action": "explode", "uow": "T"}, "unknown action 'explode'"),
    (FAILED_UNIT, {"uow": "T"}, "unknown action None"),
    (FAILED_UNIT, {}, "no unit None is failed or in progress"),
]


@pytest.mark.parametrize(("folded", "request_", "message"), REFUSALS)
def test_refused(folded: FoldedLog, request_: dict[str, str], message: str) -> None:
    decision = decide(folded, "r", request_)
    assert decision.outcome is None
    assert decision.answer["result"] == REFUSED
    assert decision.answer["message"].startswith(message)


@pytest.mark.parametrize(
    ("folded", "was"),
    [
        (state(), "in progress"),
        (state(Outcome(0, IN_PROGRESS, None, "a lock")), "in progress: a lock"),
        (BLOCKED_UNIT, "blocked: waits for S"),
    ],
)
def test_a_unit_that_a_task_may_have_is_discarded_by_the_apply_job(folded: FoldedLog, was: str) -> None:
    decision = decide(folded, "r", {"action": "discard", "uow": "T", "by": "me"})
    assert decision.outcome == Outcome(0, DISCARDING, cause=f"discarded by me; it was {was}")
    assert decision.answer["result"] == ASKED


def test_a_discard_that_the_apply_job_has_not_carried_out_is_not_appended_again() -> None:
    decision = decide(state(Outcome(0, DISCARDING, cause="discarded by me")), "r", {"action": "discard", "uow": "T"})
    assert (decision.outcome, decision.answer["result"]) == (None, ASKED)


def test_a_request_whose_answer_was_lost_is_not_carried_out_twice() -> None:
    folded = state(Outcome(0, FAILED, 3, "bad"), answered=("r",))
    assert decide(folded, "r", {"action": "retry", "uow": "T"}).outcome is None
    assert decide(folded, "r", {"action": "retry", "uow": "T"}).answer["result"] == OK


def chain(root: UnitStatus) -> FoldedLog:
    """Returns a log in which unit 2 waits for 1, which waits for 0."""
    folded = FoldedLog()
    for tid, name in enumerate(("R", "S", "T", "17")):
        folded.apply(tid, Entry(EntryKind.UNIT, UnitMeta(name, 1)), 0)
    outcomes = (
        Outcome(0, root, 3, "no parent"),
        Outcome(1, BLOCKED, None, "waits for 0"),
        Outcome(2, BLOCKED, None, "waits for 1"),
    )
    folded.apply(4, Entry(EntryKind.STATUS, StatusMeta(outcomes)), 0)
    return folded


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (FAILED, "it waits for unit R (id 0), which is failed (no parent) and holds back 2 units; resolve that one"),
        (IN_PROGRESS, "it waits for unit R (id 0), which is in progress, and goes on by itself after it"),
        (COMMITTED, "it waits for id 0, which is resolved; it goes on by itself"),
    ],
)
def test_the_root_of_a_chain_is_named(root: UnitStatus, message: str) -> None:
    decision = decide(chain(root), "r", {"action": "retry", "uow": "T"})
    assert decision.answer == {"result": REFUSED, "message": f"unit T is blocked, not failed: {message}"}


def test_a_unit_may_be_named_by_its_transaction_id() -> None:
    assert decide(chain(FAILED), "r", {"action": "retry", "uow": "0"}).outcome == Outcome(
        0, IN_PROGRESS, cause="retried by somebody"
    )
    assert "no unit '9'" in decide(chain(FAILED), "r", {"action": "retry", "uow": "9"}).answer["message"]


def test_a_units_name_goes_before_a_transaction_id() -> None:
    assert "unit 17 is in progress" in decide(chain(FAILED), "r", {"action": "retry", "uow": "17"}).answer["message"]
