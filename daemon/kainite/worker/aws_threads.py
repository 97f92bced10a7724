"""The threads that call AWS, and how the process ends when calls are still unanswered.

boto3 blocks, so each call runs in a thread of the event loop's executor. Python joins such threads when it exits, and
boto3 may wait minutes for an answer that nobody wants any more. So neither the loop nor the process waits for these
threads at its end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from kainite.base.logs import event

logger = logging.getLogger(__name__)

THREADS = 256
"""The most simultaneous calls to AWS: one a shard, and a few more. A thread is made when it is needed."""

LAST_CALLS_S = 1.0
"""Seconds that the process waits at its end for calls that are still unanswered."""


@contextmanager
def aws_threads() -> Iterator[None]:
    """Gives the running loop its threads for calls to AWS; does not wait for the calls at the end."""
    loop, calls = asyncio.get_running_loop(), ThreadPoolExecutor(THREADS, "kainite")
    loop.set_default_executor(calls)
    try:
        yield
    finally:
        calls.shutdown(wait=False, cancel_futures=True)
        loop.set_default_executor(ThreadPoolExecutor(1))


def leave_unanswered_calls(status: int) -> None:
    """Ends the process with ``status`` if calls to AWS stay unanswered for :data:`LAST_CALLS_S`; otherwise returns."""
    end = time.monotonic() + LAST_CALLS_S
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if left := [thread for thread in others if thread.is_alive()]:
        event(logger, logging.WARNING, "calls to AWS not waited for", calls=len(left))
        logging.shutdown()
        os._exit(status)
