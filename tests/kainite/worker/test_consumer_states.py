from __future__ import annotations

import pytest

from kainite.worker.consumer_states import TRANSITIONS, ConsumerState, StateOutcome


def test_every_state_has_an_end_and_every_way_leads_there() -> None:
    for state in set(ConsumerState) - {ConsumerState.COMPLETE}:
        assert any(before is state for before, _ in TRANSITIONS)
    reached, frontier = {ConsumerState.COMPLETE}, {ConsumerState.COMPLETE}
    while frontier:
        frontier = {before for (before, _), after in TRANSITIONS.items() if after in frontier} - reached
        reached |= frontier
    assert reached == set(ConsumerState)


@pytest.mark.parametrize("state", [ConsumerState.INITIALIZING, ConsumerState.PROCESSING, ConsumerState.BACKING_OFF])
def test_a_hand_over_ends_as_a_stop_does(state: ConsumerState) -> None:
    assert TRANSITIONS[state, StateOutcome.STOP] is TRANSITIONS[state, StateOutcome.HAND_OVER]


def test_no_state_that_works_for_the_shard_follows_the_loss_of_its_lease() -> None:
    after_loss = {after for (_, outcome), after in TRANSITIONS.items() if outcome is StateOutcome.LOST}
    assert after_loss == {ConsumerState.LEASE_LOST, ConsumerState.COMPLETE}


def test_nothing_follows_completion() -> None:
    assert not any(before is ConsumerState.COMPLETE for before, _ in TRANSITIONS)
