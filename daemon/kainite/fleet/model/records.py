"""The records of the coordination table: workers, duties, the leader, messages, history.

Each record has a *version*, another one with each write; it is what writes are conditional on, and what others see move
while a worker pings. A record's fields that this release does not know are kept, and written again as they were.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

from kainite.fleet.model.states import UNKNOWN, By, DutyStatus, WorkerStatus, check_duty, check_worker


class DutyKind(StrEnum):
    """The kinds of duties that this release can run; a record may name another one."""

    LOG = "log"
    EXTRACT = "extract"
    APPLY = "apply"
    CONSOLE = "console"
    VERIFY = "verify"
    PROGRAM = "program"


KAINITE_WORDS: Mapping[str, tuple[str, ...]] = {
    DutyKind.LOG: ("log", "serve"),
    DutyKind.EXTRACT: ("extract",),
    DutyKind.APPLY: ("apply",),
    DutyKind.CONSOLE: ("console",),
    DutyKind.VERIFY: ("verify", "--every"),
}
"""The command of ``kainite`` that runs a duty, for each kind that is not a program of the user's."""


class Restart(StrEnum):
    """When the program of a duty is started again after its end."""

    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NEVER = "never"
    UNKNOWN = UNKNOWN
    """A later release's: a program of this policy is not started again by this release."""

    @classmethod
    def _missing_(cls, value: object) -> Restart:
        return cls.UNKNOWN


class Command(StrEnum):
    """The order in a message to a worker.

    Starting and stopping a duty needs no message: it stands in the duty's record, which outlives every leader.
    """

    KILL = "kill"
    ENABLE = "enable"
    DISABLE = "disable"
    SHUT_DOWN = "shut-down"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a duty.

    Attributes:
        kind: one of :class:`DutyKind`, or one of a later release's.
        command: the words of a program's command line.
        properties: the settings file of the other kinds; empty for the worker's own.
        weight: the duty's part of a worker's load, above 0.
        affinity: names or labels of workers that it had better run on.
        restart: when its program is started again after its end.
        ready: the program is ready when a line of its output has this text; empty: when it has run for ``ready_after``.
        ready_after: seconds.
        start_timeout: a program that is not ready after so many seconds has failed.
        stop_grace: seconds between SIGTERM and SIGKILL.
        backoff, backoff_max: the pause after the first failure in a row, which doubles, and the longest one, seconds.
        tries: so many failures within ``window`` seconds are an error.
        window: seconds.
    """

    kind: str = DutyKind.PROGRAM
    command: tuple[str, ...] = ()
    properties: str = ""
    weight: float = 1.0
    affinity: tuple[str, ...] = ()
    restart: Restart = Restart.ALWAYS
    ready: str = ""
    ready_after: float = 1.0
    start_timeout: float = 60.0
    stop_grace: float = 10.0
    backoff: float = 1.0
    backoff_max: float = 60.0
    tries: int = 10
    window: float = 600.0

    @property
    def command_line(self) -> str:
        """Returns the command line as ``fleetCommands`` has it: ``kainite apply -p FILE`` for Kainite's own kinds."""
        words = KAINITE_WORDS.get(self.kind)
        if words is None:
            return shlex.join(self.command)
        return shlex.join(("kainite", *words, *(("-p", self.properties) if self.properties else ())))


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's record.

    Attributes:
        name: the worker's id.
        incarnation: random, another one for each start of its process.
        status: as the tables in :mod:`kainite.fleet.model.states` have it.
        labels: words by which duties may prefer the worker.
        capacity: the most weight that the worker is given; None means no limit.
        kinds: the kinds of duties that it can run.
        declared: the names of the duties that its host's files declare; None where it does not say what it runs.
        allowed: the command lines of other duties that its host's files allow.
        process: identity of its process, as text.
        held_off: an operator has disabled it.
        read: sequence number of the last message that it has obeyed.
        version: the record's version.
        extra: fields of a later release.
    """

    name: str
    incarnation: str
    status: WorkerStatus = WorkerStatus.ALIVE
    labels: tuple[str, ...] = ()
    capacity: float | None = None
    kinds: tuple[str, ...] = tuple(DutyKind)
    declared: tuple[str, ...] | None = None
    allowed: tuple[str, ...] = ()
    process: str = ""
    held_off: bool = False
    read: int = 0
    version: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def become(self, status: WorkerStatus, by: By) -> Worker:
        """Returns the record with another status.

        Raises:
            IllegalTransitionError: that is none of the tables' transitions.
        """
        check_worker(self.status, status, by)
        return replace(self, status=status)

    def can_run(self, duty: Duty) -> bool:
        """Returns whether the worker's release has the duty's kind, and the host's files let the duty run there.

        The record only tells the leader where a duty may go. The host itself looks into its files before it starts
        anything (:class:`kainite.fleet.programs.commands.HostCommands`), because others may write the record.
        """
        permitted = self.declared is None or duty.name in self.declared or duty.work.command_line in self.allowed
        return duty.work.kind in self.kinds and permitted

    def suits(self, work: Work) -> bool:
        """Returns whether one of the work's affinities is this worker's name or label."""
        return bool({self.name, *self.labels} & set(work.affinity))


@dataclass(frozen=True, slots=True)
class Duty:
    """A duty's record.

    Attributes:
        name: the duty's name.
        work: the duty's program, and how it is run.
        status: as the tables in :mod:`kainite.fleet.model.states` have it.
        worker, incarnation: whose it is; empty unless it is waiting or running.
        assignment: raised each time that it is given to a worker.
        enabled: an operator has not disabled it.
        halted: an operator has stopped it.
        goal: the worker that it is to be moved to; empty: any.
        declared: whether the settings declare the duty.
        error: why it failed last.
        version: the record's version.
        extra: fields of a later release.
    """

    name: str
    work: Work
    status: DutyStatus = DutyStatus.UNASSIGNED
    worker: str = ""
    incarnation: str = ""
    assignment: int = 0
    enabled: bool = True
    halted: bool = False
    goal: str = ""
    declared: bool = False
    error: str = ""
    version: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wanted(self) -> bool:
        """Tells whether an operator wants the duty to run."""
        return self.enabled and not self.halted

    def belongs_to(self, worker: Worker) -> bool:
        """Returns whether the duty is held by this very process of the worker."""
        return self.status.held and (self.worker, self.incarnation) == (worker.name, worker.incarnation)

    def become(self, status: DutyStatus, by: By, error: str = "") -> Duty:
        """Returns the record with another status; any but waiting and running takes the duty from its worker.

        Raises:
            IllegalTransitionError: that is none of the tables' transitions.
        """
        check_duty(self.status, status, by)
        if status.held:
            return replace(self, status=status, error=error)
        return replace(self, status=status, worker="", incarnation="", error=error)

    def given_to(self, worker: Worker) -> Duty:
        """Returns the record as the leader gives the duty to a worker."""
        given = self.become(DutyStatus.WAITING, By.LEADER, self.error)
        return replace(
            given, worker=worker.name, incarnation=worker.incarnation, assignment=self.assignment + 1, goal=""
        )


@dataclass(frozen=True, slots=True)
class Lead:
    """The leader's lease.

    Attributes:
        worker, incarnation: the leading worker and its incarnation; empty when the lead was given back.
        generation: raised by each new leader; every write of a leader is conditional on it.
        version: the record's version.
    """

    worker: str = ""
    incarnation: str = ""
    generation: int = 0
    version: str = ""

    def is_of(self, worker: Worker) -> bool:
        """Returns whether this very process of the worker leads."""
        return (self.worker, self.incarnation) == (worker.name, worker.incarnation)


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """A message to a worker.

    Attributes:
        worker: the name of the worker that the message is for.
        number: in the order of the worker's messages.
        command: one of :class:`Command`, or one of a later release's.
        content: the name of the duty that it is about, or empty.
        version: the record's version.
        process: the identity of the only process that obeys the message; empty for any process with the worker's name.
    """

    worker: str
    number: int
    command: str
    content: str = ""
    version: str = ""
    process: str = ""


Record: TypeAlias = Worker | Duty | Lead | WorkerMessage


class Subject(StrEnum):
    """The kinds of things that have a history."""

    WORKER = "worker"
    DUTY = "duty"
    LEADER = "leader"


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of a history.

    Attributes:
        subject, name: the kind and the name of the thing that the event is about.
        status: the status since then.
        who: the worker or operator that changed it.
        why: in words.
        worker: for a duty, whose it was or is.
        at: milliseconds since the epoch by the clock of ``who``; for people alone.
    """

    subject: Subject
    name: str
    status: str
    who: str
    why: str
    worker: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that one read of the table shows."""

    workers: Mapping[str, Worker] = field(default_factory=dict)
    duties: Mapping[str, Duty] = field(default_factory=dict)
    lead: Lead | None = None
    messages: tuple[WorkerMessage, ...] = ()
    """In the order of their numbers, all workers' together."""

    def duties_of(self, worker: Worker) -> tuple[Duty, ...]:
        """Returns the duties that this very process of the worker holds, by name."""
        return tuple(duty for _, duty in sorted(self.duties.items()) if duty.belongs_to(worker))

    def load_of(self, worker: Worker) -> float:
        """Returns the weight of a worker's duties; a duty that waits counts like one that runs."""
        return sum(duty.work.weight for duty in self.duties_of(worker))
