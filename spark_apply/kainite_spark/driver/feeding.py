"""The feed of the log's owner beside the rounds of an apply job: an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT, Meter
from kainite.peers.access import Access
from kainite.peers.feed.conversation import Wishes
from kainite.peers.feed.following import LogFeed
from kainite.peers.held_files import following_files
from kainite.settings import ApplySettings, LogSettings

CREDIT: Final = 4 << 20
"""Bytes that the owner may send before the job has folded them."""

END_S: Final = 2.0
"""Seconds for which the job, at its end, waits for the connection to close."""


def feed_of(store: LogStore, log: LogSettings, apply: ApplySettings, access: Access, name: str) -> LogFeed:
    """Returns the feed of a log for the apply job called ``name``; the feed does not run yet."""
    wishes = Wishes(log.name, name, CREDIT, apply.feed_bytes, outcomes=True)
    return LogFeed(store, log.partition, wishes, access)


@contextlib.contextmanager
def beside(feed: LogFeed, access: Access | None = None, meter: Meter = SILENT) -> Iterator[None]:
    """Runs a feed while the context is entered.

    Args:
        feed: the feed.
        access: the feed's, whose certificates and secrets are read again when they change.
        meter: takes the metrics of that.
    """

    async def run() -> None:
        async with following_files((access or Access()).held, meter):
            await feed.run()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="log-feed", daemon=True)
    thread.start()
    try:
        yield
    finally:
        feed.close()
        thread.join(END_S)
