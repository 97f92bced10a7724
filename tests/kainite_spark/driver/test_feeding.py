"""The feed beside an apply job: its own thread, which ends with the job."""

from __future__ import annotations

import asyncio
import threading

from kainite.peers.access import Access
from kainite.settings import ApplySettings
from kainite_spark.driver.feeding import CREDIT, beside, feed_of
from support.followed_log import LOG
from support.log_members import SETTINGS, members
from support.waiting import until


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "log-feed"]


async def test_the_log_is_followed_on_a_thread_while_the_job_runs() -> None:
    async with members() as all_:
        log = await all_.join("a")
        feed = feed_of(all_.store, SETTINGS, ApplySettings(), Access(), "job")
        with beside(feed):
            await until(lambda: feed.is_following)
            assert threads() == ["log-feed"]
            assert [follower.name for follower in log.reception.followers] == ["job"]
            ending = asyncio.create_task(asyncio.to_thread(feed.close))
            await ending
        assert threads() == []


async def test_a_job_asks_for_its_own_log_and_for_so_many_bytes() -> None:
    async with members() as all_:
        log = await all_.join("a")
        feed = feed_of(all_.store, SETTINGS, ApplySettings(), Access(), "job")
        with beside(feed):
            await until(lambda: bool(log.reception.followers))
            (session,) = log.reception.followers
            follow = session._follow  # noqa: SLF001 - what was asked
            assert (follow.log, follow.credit, follow.outcomes) == (LOG, CREDIT, True)
            await asyncio.to_thread(feed.close)
