"""The times hang together whatever an operator sets: a worker ends before its duties start elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.fleet.steps.timing import Timing

PINGS = st.floats(0.05, 60.0)


@given(PINGS, st.floats(2.0, 10.0))
def test_a_worker_stops_before_the_leader_takes_its_duties(ping: float, pings: float) -> None:
    timing = Timing(ping=ping, timeout=pings * ping)
    assert timing.worker_ping < timing.lease < timing.silence
    assert timing.brisk < timing.ping


def test_the_defaults() -> None:
    timing = Timing()
    assert (timing.worker_ping, timing.settle, timing.brisk, timing.silence) == (6.0, 6.0, 0.5, 12.0)
    assert round(timing.lease, 6) == 10.8
