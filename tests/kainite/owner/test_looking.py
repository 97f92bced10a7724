"""When the owner looks at outcomes and requests, with and without somebody who announces."""

from __future__ import annotations

from kainite.owner.looking import OUTCOMES_S, REQUESTS_S, Looking

POLL_S = 0.25


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_announcements_every_look_reads_outcomes_while_a_unit_may_have_one() -> None:
    clock = Clock()
    looking = Looking(clock, POLL_S)
    assert all(looking.outcomes_due(through=5) for _ in range(3))
    assert not looking.outcomes_due(through=5, unresolved=False)
    clock.now += REQUESTS_S
    assert looking.outcomes_due(through=5, unresolved=False)
    assert not looking.outcomes_due(through=5, unresolved=False)
    assert looking.outcomes_due(through=5), "a unit has come"


def test_a_log_that_is_looked_at_often_is_asked_each_fourth_time() -> None:
    clock = Clock()
    looking = Looking(clock, 0.01)
    asked = []
    for _ in range(9):
        asked.append(looking.requests_due())
        clock.now += 0.0101
    assert asked == [True, False, False, False, True, False, False, False, True]


def test_with_announcements_outcomes_are_read_when_they_are_told_or_after_long() -> None:
    clock = Clock()
    looking = Looking(clock, POLL_S)
    with looking.announced():
        assert looking.outcomes_due(-1), "nobody knows what was written before"
        assert not looking.outcomes_due(-1)
        looking.told(4)
        assert looking.wake.is_set()
        assert looking.outcomes_due(3)
        assert looking.outcomes_due(3), "until the log has them: the read may have failed"
        assert not looking.outcomes_due(4)
        clock.now += OUTCOMES_S
        assert looking.outcomes_due(4)
        assert not looking.outcomes_due(4)
    assert looking.outcomes_due(4)


def test_an_announcement_that_is_repeated_or_late_wakes_nobody() -> None:
    looking = Looking(Clock(), POLL_S)
    looking.told(4)
    looking.wake.clear()
    looking.told(4)
    looking.told(2)
    assert not looking.wake.is_set()


def test_the_inbox_is_read_now_and_then() -> None:
    clock = Clock()
    looking = Looking(clock, POLL_S)
    with looking.announced():
        assert looking.requests_due()
        assert not looking.requests_due()
        clock.now += REQUESTS_S
        assert looking.requests_due()


def test_of_several_apply_jobs_each_announcement_is_looked_at_whatever_its_id() -> None:
    """Shows it: each job has ids of its own, so one that is behind has lower ones."""
    looking = Looking(Clock(), POLL_S, several=True)
    with looking.announced():
        assert looking.outcomes_due(through=-1), "the first look"
        for last_id in (9, 3, 3):
            assert not looking.outcomes_due(through=-1)
            looking.told(last_id)
            assert looking.wake.is_set()
            assert looking.outcomes_due(through=-1)
