"""The holder of a lease and its claimant never act at the same time, whatever is slow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.lease import NEVER, Tenure, seconds_left
from kainite.base.liveness import observe

SECONDS = 10.0
DELAYS = st.floats(0.0, 30.0)


def test_a_tenure_holds_from_the_beginning_of_its_last_write_to_before_its_end() -> None:
    tenure = Tenure(SECONDS, 100.0)
    assert (tenure.holds(109.9), tenure.holds(110.0), tenure.end) == (True, False, 110.0)
    assert tenure.renewed(105.0).end == 115.0
    assert tenure.renewed(95.0) == tenure, "a write that began earlier takes nothing back"


def test_whoever_has_written_nothing_or_has_released_it_holds_nothing() -> None:
    assert not Tenure(SECONDS).holds(NEVER)
    assert not Tenure(SECONDS, 100.0).given_up().holds(100.0)


def test_a_lease_may_be_claimed_when_it_has_stood_still_for_its_whole_time() -> None:
    seen = observe(None, "v1", 50.0)
    assert seconds_left(seen, SECONDS, 50.0) == SECONDS
    assert seconds_left(seen, SECONDS, 60.0) == 0.0
    moved = observe(seen, "v2", 59.0)
    assert seconds_left(moved, SECONDS, 60.0) == 9.0


@given(st.lists(st.tuples(DELAYS, DELAYS, DELAYS), min_size=1, max_size=8))
def test_no_claim_is_due_while_the_holder_may_act(renewals: list[tuple[float, float, float]]) -> None:
    """Plays renewals that take long, and looks of a claimant that come late, on one clock."""
    now, tenure, seen = 0.0, Tenure(SECONDS), None
    for number, (writing, looking, waiting) in enumerate(renewals):
        began = now
        now += writing
        tenure = tenure.renewed(began)
        now += looking
        seen = observe(seen, number, now)
        now += waiting
        assert not (tenure.holds(now) and seconds_left(seen, SECONDS, now) <= 0)
