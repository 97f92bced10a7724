"""Says how many files and connections a daemon, or the log for applications, may need; pure."""

from __future__ import annotations

from typing import Final

from kainite.base.file_limit import OF_ANY_PROCESS
from kainite.settings import Settings
from kainite.worker.aws_threads import THREADS

OF_A_SHARD: Final = 5
"""A child's three pipes and its pidfd, and the shard's subscription."""

SHARDS: Final = 256
"""So many shards are reckoned with where maxLeasesForWorker does not say it."""


def needed(settings: Settings, *, ports: int) -> int:
    """Returns how many files and connections a process may have open at once.

    Args:
        settings: the process's settings.
        ports: how many ports for peers the process opens.
    """
    peers = 0
    if ports:
        from kainite.peers.server import MOST_GREETING, MOST_PEERS  # a worker without units starts without this module

        peers = ports * (MOST_PEERS + MOST_GREETING)
    shards = SHARDS if settings.leases.max_leases is None else min(settings.leases.max_leases, 100 * SHARDS)
    return OF_ANY_PROCESS + THREADS + peers + OF_A_SHARD * shards
