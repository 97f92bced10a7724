"""Sees to it, when a process starts, that it may have as many files and connections open as it may need.

Many systems allow a process 1,024, some fewer, and let it ask for more; a JVM does so by itself, and so did KCL's
daemon. What is asked for is what the process can use at most: its programs inherit the limit, and some of them look at
each number below it.
"""

from __future__ import annotations

import logging
import resource
from typing import Final

from kainite.base.logs import event

logger = logging.getLogger(__name__)

OF_ANY_PROCESS: Final = 100
"""Libraries, files of settings, the health endpoint's connections, pipes of duties or of an extractor."""


def provide(wanted: int) -> int:
    """Raises the process's limit where it is lower than what is wanted; warns if it cannot be raised so far.

    Args:
        wanted: the most files and connections that the process may have open at once.

    Returns the limit that is in force.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return soft
    allowed = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        event(logger, logging.WARNING, "open files may run out: raise the limit (ulimit -Hn, LimitNOFILE=)",
              allowed=allowed, needed=wanted)  # fmt: skip
    return allowed
