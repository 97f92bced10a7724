from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.entry import UnitMeta
from kainite.log.state.chains import Chains, named
from kainite.log.state.unit_state import UnitState
from kainite.uow.touches import NOTHING

CHAINS = Chains(
    [
        (1, "failed", "no parent"),
        (3, "blocked", "waits for 1"),
        (5, "blocked", "waits for 3"),
        (6, "blocked", "waits for 3"),
        (7, "in progress", "waits for 1"),
        (8, "blocked", None),
    ]
)


def test_a_chain_ends_at_its_root() -> None:
    assert CHAINS.before(5) == (3, 1)
    assert CHAINS.before(3) == (1,)
    assert [CHAINS.before(tid) for tid in (1, 7, 8, 99)] == [()] * 4


def test_all_that_wait_behind_a_unit_are_found() -> None:
    assert CHAINS.behind(1) == (3, 5, 6)
    assert CHAINS.behind(3) == (5, 6)
    assert CHAINS.behind(5) == ()


@given(st.dictionaries(st.integers(0, 8), st.integers(0, 8)))
def test_chains_end_whatever_the_causes_say(holders: dict[int, int]) -> None:
    chains = Chains([(tid, "blocked", f"waits for {holder}") for tid, holder in holders.items()])
    for tid in holders:
        assert len(set(chains.before(tid))) == len(chains.before(tid))
        assert all(tid in chains.behind(holder) for holder in chains.before(tid) if holder != tid)


@pytest.mark.parametrize(
    ("cause", "shown"),
    [
        ("waits for 17", "waits for 17 (T-4)"),
        ("waits for 17: locked", "waits for 17 (T-4): locked"),
        ("waits for 18", "waits for 18"),
        ("the row waits for 17", "the row waits for 17"),
        (None, None),
    ],
)
def test_a_cause_names_the_unit_that_is_waited_for(cause: str | None, shown: str | None) -> None:
    holder = UnitState.dispatched(17, UnitMeta("T-4", 0), NOTHING)
    assert named(cause, {17: holder}) == shown
