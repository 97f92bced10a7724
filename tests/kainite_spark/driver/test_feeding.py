"""The feed beside an apply job: its own thread, which ends with the job."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from kainite.base.redaction import forget
from kainite.peers.access import Access, access_of
from kainite.peers.access_files import AccessFiles
from kainite.peers.connection.introduction import Key
from kainite.peers.rights import FOLLOW
from kainite.settings import ApplySettings, ServiceSettings
from kainite_spark.driver.feeding import CREDIT, beside, feed_of
from support.doors import holding
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


async def test_a_job_reads_its_secret_again_and_comes_back_with_the_new_one(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.touch(0o600)
    users.write_text("job:follow:the old secret\n")
    owner = holding({"job": Key("the old secret", frozenset({FOLLOW}))})
    access = access_of(ServiceSettings(secret_file=users))
    async with members() as all_:
        await all_.join("a", access=Access(held=owner))
        feed = feed_of(all_.store, SETTINGS, ApplySettings(), access, "job")
        with beside(feed, access):
            await until(lambda: feed.is_following)
            owner.now = AccessFiles(users={"job": Key("a new secret", frozenset({FOLLOW}))})
            await until(lambda: not feed.is_following)
            users.write_text("job:follow:a new secret\n")
            await until(lambda: feed.is_following)
            await asyncio.to_thread(feed.close)
    forget()
