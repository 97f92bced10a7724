from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.child.restart_policy import AT_SHARD_END, RestartPolicy


def restarts(tries: int = 3) -> RestartPolicy:
    return RestartPolicy(backoff=1.0, backoff_max=10.0, poison_tries=tries)


def test_pauses_double_up_to_the_longest() -> None:
    policy = restarts()
    assert [policy.failed(None).pause for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_a_batch_is_poison_once_after_so_many_tries_and_then_tried_at_the_longest_pause() -> None:
    policy = restarts()
    verdicts = [policy.failed(Position(5)) for _ in range(5)]
    assert [verdict.poison for verdict in verdicts] == [False, False, True, False, False]
    assert [verdict.pause for verdict in verdicts] == [1, 2, 10, 10, 10]


def test_earlier_batches_on_the_way_to_the_culprit_count_for_nothing() -> None:
    policy = restarts()
    for tries in range(1, 4):
        assert policy.failed(Position(5)).tries == tries
        policy.passed(Position(1), Position(1))
        policy.passed(None, None)


def test_passing_the_culprit_starts_anew() -> None:
    policy = restarts()
    policy.failed(Position(5))
    policy.passed(Position(5), Position(5))
    assert policy.failures == 0
    assert policy.failed(Position(5)).tries == 1


def test_a_batch_that_the_culprit_stands_within_passes_it() -> None:
    policy = restarts()
    policy.failed(Position(5))
    policy.passed(Position(1), Position(4))
    assert policy.failures == 1
    policy.passed(Position(3), Position(7))
    assert policy.failures == 0


def test_after_a_failure_while_idle_only_a_batch_that_nobody_passed_before_starts_anew() -> None:
    policy = restarts()
    policy.passed(Position(1), Position(1))
    policy.failed(None)
    policy.passed(Position(1), Position(1))
    assert policy.failed(None).tries == 2
    policy.passed(Position(2), Position(2))
    assert policy.failed(None).tries == 1


def test_whatever_is_passed_again_on_the_way_to_the_shards_end_its_pauses_grow() -> None:
    policy = restarts()
    pauses = []
    for _ in range(4):
        policy.passed(Position(7), Position(7))
        pauses.append(policy.failed(AT_SHARD_END).pause)
    assert pauses == [1, 2, 10, 10]


def test_a_later_culprit_is_progress() -> None:
    policy = restarts()
    assert [policy.failed(Position(n)).pause for n in (5, 5, 6, 7)] == [1, 2, 1, 1]
    assert policy.failed(Position(7)).tries == 2


def test_an_earlier_culprit_has_tries_of_its_own_and_is_no_progress() -> None:
    policy = restarts()
    found = [policy.failed(Position(n)) for n in (5, 4, 5, 4, 5)]
    assert [decision.tries for decision in found] == [1] * 5
    assert [decision.pause for decision in found] == [1, 2, 4, 8, 10]


def test_a_death_before_the_first_batch_interrupts_neither_the_pauses_nor_the_tries_of_a_batch() -> None:
    policy = restarts()
    found = [policy.failed(culprit) for culprit in [None, Position(5)] * 4]
    assert [decision.pause for decision in found] == [1, 2, 4, 8, 10, 10, 10, 10]
    assert [decision.tries for decision in found[1::2]] == [1, 2, 3, 4]
    assert [decision.poison for decision in found] == [False] * 5 + [True] + [False] * 2


def test_after_failures_of_both_kinds_passing_the_culprit_starts_anew() -> None:
    policy = restarts()
    for culprit in (Position(5), None):
        policy.failed(culprit)
    policy.passed(Position(4), Position(4))
    assert policy.failures == 2
    policy.passed(Position(5), Position(5))
    assert policy.failures == 0


@given(st.lists(st.one_of(st.none(), st.integers(0, 3).map(Position)), max_size=200))
def test_pauses_stay_in_bounds(culprits: list[Position | None]) -> None:
    policy = restarts()
    assert all(1 <= policy.failed(culprit).pause <= 10 for culprit in culprits)
