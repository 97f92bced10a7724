"""The stance of a worker: what it does about leases that are not its own."""

from __future__ import annotations

from enum import Enum, auto


class Stance(Enum):
    """Whether the worker takes a part of the leases, none, or those that a leader assigned to it.

    :mod:`kainite.leases.kcl3` decides it, or the daemon where it cannot work. The lease keeper asks for it in each
    round.
    """

    SHARE = auto()  # as in KCL 2.x: every worker takes its part of the leases
    ABSTAIN = auto()  # this worker takes none: it could not process what it reads
    ASSIGNED = auto()  # as in KCL 3.x: the leader assigns, and a worker takes the leases that carry its name
