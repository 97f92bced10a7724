"""Tests when a Spark job counts as stalled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite_spark.driver.stall import TELL_S, Progress, Stall, StallWatch, cause_of_stall


def test_a_job_without_executors_is_told_and_then_over() -> None:
    watch = StallWatch(60.0)
    nothing = Progress(0, 0, 0)
    assert watch.see(TELL_S - 0.1, nothing) is Stall.SHORT
    assert watch.see(TELL_S, nothing) is Stall.TOLD
    assert watch.see(59.9, nothing) is Stall.TOLD
    assert watch.see(60.0, nothing) is Stall.OVER


def test_a_task_that_runs_is_no_stall_however_long_it_takes() -> None:
    watch = StallWatch(60.0)
    assert all(watch.see(float(seconds), Progress(1, 0)) is Stall.NONE for seconds in range(0, 1_000, 10))


def test_a_completed_task_begins_the_time_anew() -> None:
    watch = StallWatch(60.0)
    watch.see(50.0, Progress(0, 0))
    assert watch.see(59.0, Progress(0, 1)) is Stall.NONE
    assert watch.see(70.0, Progress(0, 1)) is Stall.TOLD
    assert watch.stalled(70.0) == 11.0
    assert watch.see(119.0, Progress(0, 1)) is Stall.OVER


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 2), st.integers(0, 2)), max_size=40))
def test_it_is_over_only_after_the_limit_without_any_movement(steps: list[tuple[float, int, int]]) -> None:
    watch, now, moved, completed = StallWatch(30.0), 0.0, 0.0, 0
    for seconds, running, more in steps:
        now += seconds
        completed += more
        if running or more:
            moved = now
        verdict = watch.see(now, Progress(running, completed))
        assert (verdict is Stall.OVER) == (now - moved >= 30.0)


def test_the_cause_names_executors_only_where_there_are_none() -> None:
    assert "no executors for 7 s" in cause_of_stall(Progress(0, 0, 0), 7.0)
    assert "all cores" in cause_of_stall(Progress(0, 0, 2), 7.0)
    assert "all cores" in cause_of_stall(Progress(0, 0), 7.0)
