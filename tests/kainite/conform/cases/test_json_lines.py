"""The cases of the json-lines protocols: each is one that a daemon may ask for, in an order that makes sense."""

from __future__ import annotations

import pytest

from kainite.child.events import Action
from kainite.conform.cases.case import Case, Checkpointing, ScriptedCall
from kainite.conform.cases.json_lines import FAILURES, json_lines_cases
from kainite.conform.cases.samples import generic
from kainite.settings import ChildProtocol

FORMS = [ChildProtocol.JSON_LINES, ChildProtocol.JSON_LINES_V0]


def cases(form: ChildProtocol) -> tuple[Case, ...]:
    return json_lines_cases(form, generic(), 1000)


def calls_of(case: Case) -> list[tuple[ScriptedCall, ...]]:
    lives = [case.steps, *(life for arrangement in case.arrangements for life in arrangement.lives)]
    return [tuple(step for step in life if isinstance(step, ScriptedCall)) for life in lives if life]


@pytest.mark.parametrize("form", FORMS)
def test_a_case_builds_on_earlier_ones(form: ChildProtocol) -> None:
    done: set[str] = set()
    for case in cases(form):
        assert done.issuperset(case.needs)
        assert case.name not in done
        done.add(case.name)


@pytest.mark.parametrize("form", FORMS)
def test_each_child_is_initialized_first_and_once(form: ChildProtocol) -> None:
    for case in cases(form):
        for life in calls_of(case):
            assert [call.action is Action.INITIALIZE for call in life] == [True] + [False] * (len(life) - 1)


def test_the_first_form_has_no_shutdown_request_and_does_not_say_where_reading_begins() -> None:
    calls = [call for case in cases(ChildProtocol.JSON_LINES_V0) for life in calls_of(case) for call in life]

    assert all(call.action is not Action.SHUTDOWN_REQUESTED for call in calls)
    assert {call.start for call in calls} == {"TRIM_HORIZON"}


def test_a_lost_lease_forbids_a_checkpoint_and_a_shards_end_demands_one() -> None:
    rules = {
        call.action: call.checkpoint
        for case in cases(ChildProtocol.JSON_LINES)
        for life in calls_of(case)
        for call in life
        if call.refuse is None
    }

    assert rules[Action.LEASE_LOST] is Checkpointing.FORBIDDEN
    assert rules[Action.SHARD_ENDED] is Checkpointing.REQUIRED


def test_each_error_of_a_checkpoint_has_its_case() -> None:
    names = {case.name for case in cases(ChildProtocol.JSON_LINES)}

    assert names >= {f"checkpoint-{name}" for name, _, _ in FAILURES}


def test_arrangements_have_the_same_records() -> None:
    (compared,) = [case for case in cases(ChildProtocol.JSON_LINES) if case.arrangements]
    payloads = [
        [record.data for life in arrangement.lives for step in life if isinstance(step, ScriptedCall)
         for record in step.records]
        for arrangement in compared.arrangements
    ]  # fmt: skip

    assert payloads[1:] == payloads[:-1]
    assert len(payloads[0]) == 4
