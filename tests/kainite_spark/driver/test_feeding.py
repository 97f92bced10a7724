"""A feed beside an apply job: it runs in a thread of its own, and ends with the job."""

from __future__ import annotations

import contextlib
import threading

from kainite.peers.access import Access
from kainite.settings import ApplySettings, LogSettings
from kainite.store.memory import MemoryStore
from kainite_spark.driver.feeding import beside, feed_of


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "log-feed"]


def test_a_feed_runs_until_the_job_ends_however_it_ends() -> None:
    for failure in (None, ValueError("the job broke")):
        feed = feed_of(MemoryStore(), LogSettings("l", "0"), ApplySettings(), Access(), "a job")
        with contextlib.suppress(ValueError), beside(feed):
            assert threads() == ["log-feed"]
            if failure is not None:
                raise failure

        assert threads() == []
