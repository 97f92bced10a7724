"""What an operator changes: ``kainite fleet``.

Each change is one conditional write of the record that was read, tried again a few times where a worker or the leader
wrote meanwhile. Whether a duty is to run stands in its record, and nobody but an operator writes it; what is asked of
a worker is a message, which expires where nobody obeys it.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import TypeVar

from kainite.base.errors import FleetError
from kainite.fleet.model.assignment import why_not
from kainite.fleet.model.records import Command, Duty, HistoryLine, Picture, Subject, Work, Worker, WorkerMessage
from kainite.fleet.model.states import By, DutyStatus
from kainite.fleet.store.contract import CheckRecord, DeleteRecord, FleetCommit, FleetStore, PutRecord
from kainite.fleet.store.items import later_word

T = TypeVar("T")

TRIES = 20
LASTING = (Command.ENABLE, Command.DISABLE)
"""Commands that stay in a worker's record, for every process with its name; other commands are for one process."""
FREE = (DutyStatus.UNASSIGNED, DutyStatus.ERROR)


class Operator:
    """Changes a fleet.

    Args:
        store: the store of the fleet's table.
        name: the operator's name, for the histories.
        reason: why the operator changes it, for the histories; may be empty.

    Raises (every call):
        FleetError: there is no such duty or worker, or the change makes no sense; the message says why.
        FleetUnavailableError: the table did not answer.
    """

    def __init__(self, store: FleetStore, name: str, reason: str = "") -> None:
        self._store = store
        self._name = name
        self._reason = f": {reason}" if reason else ""

    def add(self, name: str, work: Work) -> None:
        """Adds a duty."""

        def commit(picture: Picture) -> FleetCommit:
            if name in picture.duties:
                raise FleetError(f"there is a duty {name!r} already: remove it first, or take another name")
            return self._of_duty(Duty(name, work), "added")

        self._change(commit)

    def remove(self, name: str, declared: Callable[[], Container[str]]) -> None:
        """Removes a duty that does not run, and that the settings do not declare, or no longer.

        Args:
            name: the duty's.
            declared: gives the names that the settings declare.
        """

        def commit(picture: Picture) -> FleetCommit:
            duty = _duty(picture, name)
            if duty.declared and name in declared():
                raise FleetError(f"duty {name!r} is declared in the settings: take it out there, or disable it")
            if duty.status.held:
                raise FleetError(f"duty {name!r} is {duty.status} at {duty.worker}: stop it first")
            event = HistoryLine(Subject.DUTY, name, "removed", self._name, f"an operator's wish{self._reason}")
            return FleetCommit((DeleteRecord(duty),), events=(event,))

        self._change(commit)

    def enable(self, name: str) -> Duty:
        """Lets a duty run again that was disabled; returns it as it is then."""
        return self._want(name, lambda duty: replace(duty, enabled=True), "enabled")

    def disable(self, name: str) -> Duty:
        """Ends a duty, until it is enabled; returns it as it is then."""
        return self._want(name, lambda duty: replace(duty, enabled=False), "disabled")

    def start(self, name: str) -> Duty:
        """Starts a duty that was stopped, has ended, or has failed; returns it as it is then."""

        def started(duty: Duty) -> Duty:
            if not duty.enabled:
                raise FleetError(f"duty {name!r} is disabled: enable it")
            return replace(duty, halted=False)

        return self._want(name, started, "started")

    def stop(self, name: str) -> Duty:
        """Stops a duty, until it is started; returns it as it is then."""
        return self._want(name, lambda duty: replace(duty, halted=True), "stopped")

    def clear_error(self, name: str) -> None:
        """Lets a duty that has failed too often be tried again."""

        def commit(picture: Picture) -> FleetCommit:
            duty = _duty(picture, name)
            if duty.status is not DutyStatus.ERROR:
                raise FleetError(f"duty {name!r} is {duty.status}, not in error")
            status = DutyStatus.UNASSIGNED if duty.wanted else DutyStatus.STOPPED
            return self._of_duty(duty.become(status, By.OPERATOR), "error cleared")

        self._change(commit)

    def move(self, name: str, worker: str) -> None:
        """Moves a duty: it is stopped where it is, then started at the worker."""

        def commit(picture: Picture) -> FleetCommit:
            duty, goal = _duty(picture, name), _worker(picture, worker)
            if not duty.status.held:
                raise FleetError(f"duty {name!r} is {duty.status}, at no worker")
            if duty.worker == worker:
                raise FleetError(f"duty {name!r} is at {worker} already")
            if (why := why_not(duty, goal, picture.load_of(goal))) is not None:
                raise FleetError(f"worker {worker!r} {why}")
            return self._of_duty(replace(duty, goal=worker), f"it moves to {worker}")

        self._change(commit)

    def send(self, worker: str, command: Command, content: str = "") -> None:
        """Sends a message to a worker."""

        def commit(picture: Picture) -> FleetCommit:
            sent = [message.number for message in picture.messages if message.worker == worker]
            reader = _worker(picture, worker)
            if not reader.status.pings:
                raise FleetError(f"worker {worker!r} is {later_word(reader)}: it would not obey")
            number = max([reader.read, *sent]) + 1
            # A reader that has read on meanwhile takes this number for one that it has obeyed.
            process = "" if command in LASTING else reader.process
            what = f"an operator asks it to {command} {content}".rstrip() + self._reason
            event = HistoryLine(Subject.WORKER, worker, reader.status, self._name, what)
            message = WorkerMessage(worker, number, command, content, process=process)
            return FleetCommit((PutRecord(message), CheckRecord(reader)), events=(event,))

        self._change(commit)

    def kill(self, name: str) -> None:
        """Kills the program of a duty; its restart policy decides what follows."""
        duty = _duty(self._store.read(), name)
        if not duty.status.held:
            raise FleetError(f"duty {name!r} is {duty.status}: there is nothing to kill")
        self.send(duty.worker, Command.KILL, name)

    def rebalance(self) -> None:
        """Asks the leader to rebalance now."""
        lead = self._store.read().lead
        if lead is None or not lead.worker:
            raise FleetError("nobody leads the fleet: start a worker with fleet=true")
        self.send(lead.worker, Command.REBALANCE)

    def _want(self, name: str, change: Callable[[Duty], Duty], why: str) -> Duty:
        written: list[Duty] = []

        def commit(picture: Picture) -> FleetCommit:
            written.append(_settled(change(_duty(picture, name))))
            return self._of_duty(written[-1], why)

        self._change(commit)
        return written[-1]

    def _of_duty(self, duty: Duty, why: str) -> FleetCommit:
        event = HistoryLine(
            Subject.DUTY, duty.name, duty.status, self._name, f"an operator: {why}{self._reason}", duty.worker
        )
        return FleetCommit((PutRecord(duty),), events=(event,))

    def _change(self, commit: Callable[[Picture], FleetCommit]) -> None:
        for _ in range(TRIES):
            if self._store.commit(commit(self._store.read())):
                return
        raise FleetError(f"the record was written by others {TRIES} times in a row: try again")


def _settled(duty: Duty) -> Duty:
    """Returns a duty without a worker, with the status that follows from its wanted state."""
    if duty.status.held:
        return duty
    if duty.wanted and duty.status is not DutyStatus.UNASSIGNED:
        return duty.become(DutyStatus.UNASSIGNED, By.OPERATOR)
    return duty if duty.wanted or duty.status not in FREE else duty.become(DutyStatus.STOPPED, By.OPERATOR)


def _duty(picture: Picture, name: str) -> Duty:
    if name not in picture.duties:
        hint = " (it is a worker's name)" if name in picture.workers else ""
        raise FleetError(f"there is no duty {name!r}{hint}; there are: {', '.join(sorted(picture.duties)) or 'none'}")
    duty = picture.duties[name]
    if duty.status is DutyStatus.UNKNOWN:
        raise FleetError(f"duty {name!r} is {later_word(duty)}, which this release does not know: use a later one")
    return duty


def _worker(picture: Picture, name: str) -> Worker:
    if name not in picture.workers:
        raise FleetError(f"there is no worker {name!r}; there are: {', '.join(sorted(picture.workers)) or 'none'}")
    return picture.workers[name]
