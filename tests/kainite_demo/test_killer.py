"""Victims and moments are chosen from a seed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite_demo.killer import ROUNDS, Killer


@given(st.integers(0, 1000), st.lists(st.tuples(st.floats(0, 5), st.integers(0, 3)), max_size=60))
def test_nobody_is_killed_before_it_worked_or_more_often_than_planned(
    seed: int, steps: list[tuple[float, int]]
) -> None:
    killer = Killer(("a",), 10.0, seed)
    now, done, at_last_kill, kills = 0.0, 0, 0, 0
    for pause, progress in steps:
        now += pause
        done += progress
        if killer.choose(now, {"a": done}):
            assert done > at_last_kill
            at_last_kill, kills = done, kills + 1
    assert kills <= ROUNDS


def test_the_same_seed_kills_after_the_same_work() -> None:
    def moments(seed: int) -> list[tuple[int, str]]:
        killer = Killer(("a", "b"), 10.0, seed)
        ticks = ((tick, killer.choose(tick / 10, {"a": tick, "b": tick // 7})) for tick in range(500))
        return [(tick, victim) for tick, victims in ticks for victim in victims]

    assert len(moments(1)) == 2 * ROUNDS
    assert moments(1) == moments(1) != moments(2)
    assert Killer((), 10.0, 1).choose(5, {"a": 1}) == []
