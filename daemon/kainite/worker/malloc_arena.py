"""Sets how the C library's allocator holds memory in a process with many buffers of megabytes in many threads.

A GetRecords reply and the line made of it take some 4 MB each, and each is made in another thread. glibc gives each
thread an arena, and an arena holds on to what was freed in it. One arena for all threads saves a fifth of the daemon's
memory (``benchmarks/child_pipe.py``, 8 shards: 200 MB instead of 250 MB). Unmapping large blocks at once would save
another fifth, and cost a quarter more processor time.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8


def share_one_arena() -> None:
    """Makes all threads allocate from one arena.

    Must be called before threads are started. Does nothing without glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
