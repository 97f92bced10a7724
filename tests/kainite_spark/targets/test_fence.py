"""The errors of a writer that may not write."""

from __future__ import annotations

from kainite_spark.targets.fence import Fence, already_applied, fence_lost, outranked

FENCE = Fence("table/0", 3, 17)


def test_a_lost_fence_names_the_writer() -> None:
    error = fence_lost(FENCE)
    assert "generation 3, micro-batch 17 of log partition 'table/0'" in str(error)
    assert not error.retryable


def test_an_outranked_job_is_told_to_stop() -> None:
    error = outranked("table/0", 3)
    assert "newer apply job than generation 3 owns log partition 'table/0'" in str(error)
    assert not error.retryable


def test_units_that_another_task_acknowledged_are_asked_for_again() -> None:
    error = already_applied(FENCE)
    assert "log partition 'table/0'" in str(error)
    assert error.retryable


def test_a_fence_is_its_three_parts() -> None:
    assert Fence("table/0", 3, 17) == FENCE
    assert len({FENCE, Fence("table/0", 3, 18), Fence("table/0", 4, 17), Fence("table/1", 3, 17)}) == 4
