"""What a worker does about leases that are not its own."""

from __future__ import annotations

from enum import Enum, auto


class Stance(Enum):
    """Decided by :mod:`kainite.fleet`, read by the lease keeper each round."""

    SHARE = auto()  # as KCL 2.x: every worker takes its part of the leases
    ASSIGNED = auto()  # as KCL 3.x: the leader assigns, a worker takes what carries its name
