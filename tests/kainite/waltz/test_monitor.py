"""What becomes of appends under way: told by the feed, a lock failure, a mount, or the end."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.waltz.monitor import LOST, AppendOutcome, Fate, Monitor


def ids(count: int) -> list[ReqId]:
    return [ReqId(1, 1, 0, number) for number in range(count)]


async def test_what_the_feed_shows_is_appended_and_what_is_older_was_not() -> None:
    monitor, (one, two, three, four) = Monitor(), ids(4)
    futures = [monitor.begin(req_id) for req_id in (one, two, three)]
    monitor.fed(four, 6)  # another client's
    assert not any(future.done() for future in futures)
    monitor.fed(two, 7)
    assert [future.result() for future in futures[:2]] == [LOST, AppendOutcome(Fate.APPENDED, 7)]
    assert len(monitor) == 1
    monitor.fed(three, 8)
    assert futures[2].result() == AppendOutcome(Fate.APPENDED, 8)


async def test_a_lock_failure_refuses_one_append_alone() -> None:
    monitor, (one, two) = Monitor(), ids(2)
    futures = [monitor.begin(req_id) for req_id in (one, two)]
    monitor.refused(two, 5)
    monitor.refused(two, 6)
    assert futures[1].result() == AppendOutcome(Fate.REFUSED, 5)
    assert not futures[0].done()


async def test_a_mount_loses_what_is_still_under_way() -> None:
    monitor = Monitor()
    futures = [monitor.begin(req_id) for req_id in ids(3)]
    monitor.lose_all()
    assert [future.result() for future in futures] == [LOST] * 3
    assert len(monitor) == 0


async def test_an_id_is_used_once_at_a_time() -> None:
    monitor, (one,) = Monitor(), ids(1)
    monitor.begin(one)
    with pytest.raises(ValueError, match="under way already"):
        monitor.begin(one)


async def test_the_end_tells_those_who_wait_that_nothing_is_known() -> None:
    monitor = Monitor()
    futures = [monitor.begin(req_id) for req_id in ids(2)]
    futures[0].cancel()
    monitor.close()
    with pytest.raises(asyncio.CancelledError):
        futures[0].result()
    with pytest.raises(LogUnavailableError, match="is closed; whether it appended is unknown"):
        futures[1].result()
