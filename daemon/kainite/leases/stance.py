"""The stance of a worker: what it does about leases that are not its own."""

from __future__ import annotations

from enum import Enum, auto


class Stance(Enum):
    """Decided by :mod:`kainite.fleet`, or the daemon where it cannot work; read by the lease keeper in each round."""

    SHARE = auto()  # as in KCL 2.x: every worker takes its part of the leases
    ABSTAIN = auto()  # this worker takes none: it could not process what it reads
    ASSIGNED = auto()  # as in KCL 3.x: the leader assigns, and a worker takes the leases that carry its name
