"""What a worker decides at one look: commits and orders to its programs, in order.

The shell carries the steps out one after the other. A commit that returns False ends the plan: something has changed,
and the next look decides anew. A crash between two steps leaves what the table says; the next look of this worker, or
of the leader, goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from kainite.fleet.model.records import Duty
from kainite.fleet.store.contract import FleetCommit


class ProgramPhase(Enum):
    """How far a program is."""

    STARTING = auto()
    READY = auto()
    STOPPING = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class ProgramState:
    """One run of a duty's program, as the shell sees it.

    Attributes:
        duty: the duty's name.
        assignment: the assignment for which it was started.
        run: another number for each run.
        phase: how far it is.
        since: when it was started, by the boot clock.
        told_to_end: the worker stopped it; its end is no failure.
        clean: it ended with status 0.
        error: how it ended otherwise, with the last lines of its standard error.
    """

    duty: str
    assignment: int
    run: int
    phase: ProgramPhase
    since: float
    told_to_end: bool = False
    clean: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class KillAll:
    """Kills all programs, waits until they are gone, and forgets them."""


@dataclass(frozen=True, slots=True)
class StartProgram:
    """Starts the program of a duty."""

    duty: Duty


@dataclass(frozen=True, slots=True)
class StopProgram:
    """Stops a program: SIGTERM, and SIGKILL after its grace."""

    duty: str


@dataclass(frozen=True, slots=True)
class KillProgram:
    """Kills a program; its end is a failure unless it was told to end.

    Attributes:
        duty: the duty's name.
        why: what its end is put down to.
        failed: whether its end is a failure.
    """

    duty: str
    why: str
    failed: bool = True


@dataclass(frozen=True, slots=True)
class ForgetProgram:
    """Forgets a program that has ended."""

    duty: str


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Ends the daemon gracefully."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Logs something that an operator should know."""

    what: str
    about: str


Order: TypeAlias = KillAll | StartProgram | StopProgram | KillProgram | ForgetProgram | ShutDown | Notice


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: orders, a commit, and orders that follow from it.

    Attributes:
        before: orders that are carried out before the commit.
        commit: None where there is nothing to write.
        after: orders that are carried out when the commit has succeeded.
        pings: whether the commit is a sign of life of this worker.
        idle: whether the commit is nothing but a sign of life.
    """

    before: tuple[Order, ...] = ()
    commit: FleetCommit | None = None
    after: tuple[Order, ...] = ()
    pings: bool = False
    idle: bool = False
