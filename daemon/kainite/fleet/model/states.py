"""The statuses of workers, duties and leadership, and who may change them: tables.

A worker:

===========  =========================================================================================
alive        it pings, and may be given duties
disabled     it pings, and is given none: an operator disabled it, or it is in its dormant hours
closing      it stops its duties and ends
dead         it ended, or was silent too long; the leader takes its duties away
unloaded     dead, and no duty is recorded with it any more; its record is deleted after a while
unknown      a later release's: whoever does not know it counts on nothing but the signs of life
===========  =========================================================================================

A duty:

===========  =========================================================================================
unassigned   nobody has it; the leader gives it to a worker if it is wanted
waiting      it is a worker's; its program starts, or waits out the pause after a failure
running      its program has said that it is ready
stopped      it ended by itself for good, or an operator stopped or disabled it
error        it failed too often; an operator has to clear that
unknown      a later release's: kept as it is, and left to those who know it
===========  =========================================================================================

Whether a duty is *wanted* (enabled, and not stopped by an operator) stands beside its status and is an operator's
alone: no worker and no leader ever writes it. So a stop outlives every leader.

Leadership, as one worker sees its own: normal, candidate (it has found no live leader, and its claim is under way),
leader (its claim has succeeded, and no other generation has been seen).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

UNKNOWN: Final = "unknown"
"""Stands for a word of a later release."""


class By(StrEnum):
    """Who changes a status."""

    WORKER = "worker"
    """The worker itself, or the worker whose duty it is."""
    LEADER = "leader"
    OPERATOR = "operator"


class WorkerStatus(StrEnum):
    ALIVE = "alive"
    DISABLED = "disabled"
    CLOSING = "closing"
    DEAD = "dead"
    UNLOADED = "unloaded"
    UNKNOWN = UNKNOWN

    @classmethod
    def _missing_(cls, value: object) -> WorkerStatus:
        return cls.UNKNOWN

    @property
    def pings(self) -> bool:
        """Tells whether a worker of this status has to ping, or else is dead."""
        return self not in (WorkerStatus.DEAD, WorkerStatus.UNLOADED)


class DutyStatus(StrEnum):
    UNASSIGNED = "unassigned"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPED = "stopped"
    ERROR = "error"
    UNKNOWN = UNKNOWN

    @classmethod
    def _missing_(cls, value: object) -> DutyStatus:
        return cls.UNKNOWN

    @property
    def held(self) -> bool:
        """Tells whether a duty of this status is a worker's."""
        return self in (DutyStatus.WAITING, DutyStatus.RUNNING)


class LeadershipStatus(StrEnum):
    NORMAL = "normal"
    CANDIDATE = "candidate"
    LEADER = "leader"


class IllegalTransitionError(Exception):
    """A status was to be changed in a way that the tables do not have: a mistake in the program."""


_W, _D, _L = WorkerStatus, DutyStatus, LeadershipStatus

WORKER_TRANSITIONS: Final[Mapping[tuple[WorkerStatus, WorkerStatus], frozenset[By]]] = {
    (_W.ALIVE, _W.DISABLED): frozenset({By.WORKER}),
    (_W.DISABLED, _W.ALIVE): frozenset({By.WORKER}),
    (_W.ALIVE, _W.CLOSING): frozenset({By.WORKER}),
    (_W.DISABLED, _W.CLOSING): frozenset({By.WORKER}),
    (_W.CLOSING, _W.DEAD): frozenset({By.WORKER, By.LEADER}),
    (_W.ALIVE, _W.DEAD): frozenset({By.LEADER}),
    (_W.DISABLED, _W.DEAD): frozenset({By.LEADER}),
    (_W.DEAD, _W.UNLOADED): frozenset({By.LEADER}),
    # A worker that was silent goes on: after it has stopped all its programs.
    (_W.DEAD, _W.ALIVE): frozenset({By.WORKER}),
    (_W.UNLOADED, _W.ALIVE): frozenset({By.WORKER}),
    # A later release's leader has written it, or a later release's worker that is silent.
    (_W.UNKNOWN, _W.ALIVE): frozenset({By.WORKER}),
    (_W.UNKNOWN, _W.DISABLED): frozenset({By.WORKER}),
    (_W.UNKNOWN, _W.CLOSING): frozenset({By.WORKER}),
    (_W.UNKNOWN, _W.DEAD): frozenset({By.LEADER}),
}

DUTY_TRANSITIONS: Final[Mapping[tuple[DutyStatus, DutyStatus], frozenset[By]]] = {
    (_D.UNASSIGNED, _D.WAITING): frozenset({By.LEADER}),
    (_D.UNASSIGNED, _D.STOPPED): frozenset({By.OPERATOR}),
    # The worker gives it back, before or after it ran; the leader takes it from a dead worker only.
    (_D.WAITING, _D.UNASSIGNED): frozenset({By.WORKER, By.LEADER}),
    (_D.RUNNING, _D.UNASSIGNED): frozenset({By.WORKER, By.LEADER}),
    (_D.WAITING, _D.RUNNING): frozenset({By.WORKER}),
    (_D.RUNNING, _D.WAITING): frozenset({By.WORKER}),
    # The leader: of a dead worker, where an operator has stopped the duty meanwhile.
    (_D.WAITING, _D.STOPPED): frozenset({By.WORKER, By.LEADER}),
    (_D.RUNNING, _D.STOPPED): frozenset({By.WORKER, By.LEADER}),
    (_D.WAITING, _D.ERROR): frozenset({By.WORKER}),
    (_D.RUNNING, _D.ERROR): frozenset({By.WORKER}),
    (_D.STOPPED, _D.UNASSIGNED): frozenset({By.OPERATOR}),
    (_D.ERROR, _D.UNASSIGNED): frozenset({By.OPERATOR}),
    (_D.ERROR, _D.STOPPED): frozenset({By.OPERATOR}),
}

LEADERSHIP_TRANSITIONS: Final[frozenset[tuple[LeadershipStatus, LeadershipStatus]]] = frozenset(
    {
        (_L.NORMAL, _L.CANDIDATE),
        (_L.CANDIDATE, _L.LEADER),
        (_L.CANDIDATE, _L.NORMAL),
        (_L.LEADER, _L.NORMAL),
        (_L.LEADER, _L.CANDIDATE),
    }
)


def check_worker(old: WorkerStatus, new: WorkerStatus, by: By) -> None:
    """Checks a change of a worker's status; writing the same status again is no change.

    Raises:
        IllegalTransitionError: the table does not have it.
    """
    if old is not new and by not in WORKER_TRANSITIONS.get((old, new), ()):
        raise IllegalTransitionError(f"a {by} may not make a worker {new} that is {old}")


def check_duty(old: DutyStatus, new: DutyStatus, by: By) -> None:
    """Checks a change of a duty's status; writing the same status again is no change.

    Raises:
        IllegalTransitionError: the table does not have it.
    """
    if old is not new and by not in DUTY_TRANSITIONS.get((old, new), ()):
        raise IllegalTransitionError(f"a {by} may not make a duty {new} that is {old}")
