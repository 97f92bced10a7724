"""An outcomes partition is read on from where the last reading stopped, also where it was truncated meanwhile."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.views.followed_outcomes import FollowedOutcomes
from kainite.store.memory import MemoryStore
from support.outcomes_log import OutcomesLog


def outcome(tid: int) -> Outcome:
    return Outcome(tid, UnitStatus.COMMITTED, 0)


def test_each_batch_is_told_once_and_kept_until_the_log_has_it() -> None:
    store = MemoryStore()
    job, other = OutcomesLog(store, target="a"), OutcomesLog(store, target="b")
    followed = FollowedOutcomes(store, "0", "a")
    assert (followed.read(), bool(followed)) == ([], False)
    job.report(outcome(1))
    other.report(outcome(2))
    at = job.last_id
    assert len(followed.read()) == 1
    job.report(outcome(3))
    assert len(followed.read()) == 1
    assert (followed.read(), bool(followed)) == ([], True)
    assert followed.beyond(-1) == (outcome(1), outcome(3))
    assert followed.beyond(at) == (outcome(3),)
    assert followed.beyond(job.last_id) == ()
    assert not followed


def test_what_was_truncated_before_it_was_read_is_left_out() -> None:
    store = MemoryStore()
    job, followed = OutcomesLog(store), FollowedOutcomes(store, "0")
    followed.read()
    job.report(outcome(1))
    job.report(outcome(2))
    store.truncate(outcomes_partition("0"), job.last_id)
    with pytest.raises(LogCorruptError):
        followed.read()
    job.truncate(job.last_id)
    assert followed.read() == ()
    assert [batch.first_id for batch in followed.read()] == [job.last_id]
