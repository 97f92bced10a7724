"""The cases of the markers dialect: batches where there are any, and no payload that holds a marker."""

from __future__ import annotations

import pytest

from kainite.base.markers import Batching, Markers
from kainite.conform.cases.case import Case, Messages
from kainite.conform.cases.markers import markers_cases
from kainite.conform.cases.samples import generic
from kainite.settings import MarkersSettings

SIZE = 7


def cases(batching: Batching, markers: Markers | None = None) -> tuple[Case, ...]:
    return markers_cases(markers or MarkersSettings().markers, batching, SIZE, generic(), 1000)


def messages(case: Case) -> list[Messages]:
    lives = [case.steps, *(life for arrangement in case.arrangements for life in arrangement.lives)]
    return [step for life in lives for step in life if isinstance(step, Messages)]


@pytest.mark.parametrize("batching", Batching)
def test_a_case_builds_on_earlier_ones_and_asks_for_something(batching: Batching) -> None:
    done: set[str] = set()
    for case in cases(batching):
        assert done.issuperset(case.needs)
        assert case.name not in done
        assert messages(case)
        done.add(case.name)


@pytest.mark.parametrize("batching", Batching)
def test_no_payload_holds_a_marker(batching: Batching) -> None:
    spoken = MarkersSettings().markers
    for payload in (payload for case in cases(batching) for step in messages(case) for payload in step.payloads):
        spoken.message(payload)


def test_batches_are_tried_whole_in_part_and_empty() -> None:
    sizes = {len(step.payloads) for case in cases(Batching.SUPERVISOR) for step in messages(case)}
    names = {case.name for case in cases(Batching.SUPERVISOR)} - {case.name for case in cases(Batching.SINGLE)}

    assert sizes >= {0, 1, SIZE}
    assert names >= {"whole-batch", "empty-batch"}


@pytest.mark.parametrize("batching", Batching)
def test_arrangements_have_the_same_messages(batching: Batching) -> None:
    (compared,) = [case for case in cases(batching) if case.arrangements]
    given = [
        [
            payload
            for life in arrangement.lives
            for step in life
            if isinstance(step, Messages)
            for payload in step.payloads
        ]
        for arrangement in compared.arrangements
    ]

    assert given[1:] == given[:-1]
