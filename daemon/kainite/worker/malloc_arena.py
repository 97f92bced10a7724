"""How the C library keeps memory for a process that handles many buffers of megabytes in many threads.

A GetRecords reply and the line made of it take some 4 MB each, and each of them is made in another
thread. glibc gives threads arenas of their own, each of which keeps what was freed in it: one arena for all
saves a fifth of the daemon's memory (``benchmarks/child_pipe.py``, 8 shards: 200 MB for 250 MB). Having
large blocks unmapped at once would save another fifth, and cost a quarter more processor time.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8


def share_one_arena() -> None:
    """Let all threads allocate from one arena.

    To be called before threads are started. Without glibc this does nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
