"""How the C library keeps memory for a process that handles many buffers of megabytes in many threads.

A GetRecords reply and the line made of it take some 4 MB each. glibc gives each thread an arena of
its own, and after the first large block is freed it takes later ones from there, where they leave holes:
with 8 shards the daemon then needs half as much again (``benchmarks/child_pipe.py``: 240 MB, else 160 MB).
"""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
LARGE = 2**20
ARENAS = 2


def give_back_large_blocks() -> None:
    """Have blocks of 1 MB and more mapped, and unmapped when freed, and let threads share two arenas.

    To be called before threads are started. Without glibc this does nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE)
        mallopt(_M_ARENA_MAX, ARENAS)
