"""A worker's step for its own record: it registers, pings, obeys messages, changes its status, heals itself.

=============================  ====================================================================================
the record                     then
=============================  ====================================================================================
none                           all programs are killed; a new record
another process's, alive       all programs are killed; nothing until that one is silent: two workers have one name
another process's, gone        all programs are killed; a new record over it; also where it is this process's own, of a
                               write that had no answer and came late
mine: dead or unloaded         all programs are killed, then alive under a new incarnation: the worker was silent, and
                               what is recorded with its old incarnation is the leader's to give out
mine                           a ping when it is due; with it the status that it should have, and the messages obeyed
=============================  ====================================================================================

A message that names a process is for that process alone: an order to end must not end the next process of that name,
which cannot know how old the message is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kainite.fleet.model.records import Command, HistoryLine, Picture, Subject, Worker, WorkerMessage
from kainite.fleet.model.states import By, WorkerStatus
from kainite.fleet.steps.observer import Observer
from kainite.fleet.steps.plan import KillAll, KillProgram, Notice, Order, PlanStep, ShutDown
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import MOST_CHANGES, DeleteRecord, FleetCommit, PutRecord, RecordChange

MOST_MESSAGES = MOST_CHANGES - 2
"""Obeyed at one look: they are deleted in one commit with the record and a line of its history."""

ProcessGone = Callable[[str], bool]
"""Tells whether a process, by its identity as text, has provably ended."""


@dataclass(frozen=True, slots=True)
class Obeyed:
    """The effects of a worker's messages.

    Attributes:
        me: the record, in which they are read.
        orders: the orders in the messages.
        messages: themselves.
        rebalance: one of them asks for that.
    """

    me: Worker
    orders: tuple[Order, ...] = ()
    messages: tuple[WorkerMessage, ...] = ()
    rebalance: bool = False


def entering(
    fresh: Worker, incarnation: str, picture: Picture, observer: Observer, timing: Timing, is_gone: ProcessGone
) -> PlanStep | None:
    """Returns the write that registers this worker in the fleet; None if it is registered.

    Args:
        fresh: this worker's record as it is at its start.
        incarnation: a new one, for its next entry.
        picture: the table's contents, as they were read.
        observer: has this worker's observations.
        timing: the times of the fleet.
        is_gone: tells whether another process under this worker's name has ended.
    """
    stands = picture.workers.get(fresh.name)
    if stands is None:
        return _enter(replace(fresh, incarnation=incarnation), "it has started")
    if stands.incarnation == fresh.incarnation:
        if stands.status.pings:
            return None
        healed = stands.become(WorkerStatus.ALIVE, By.WORKER)
        return _enter(replace(healed, incarnation=incarnation), "it goes on after a silence")
    gone = is_gone(stands.process) or stands.process == fresh.process != ""
    if stands.status.pings and not gone and observer.silence_of(stands) < timing.silence:
        return PlanStep(
            before=(KillAll(), Notice("another worker has this worker's id: give each its own", fresh.name)), idle=True
        )
    taken = replace(fresh, incarnation=incarnation, held_off=stands.held_off, read=stands.read, version=stands.version)
    return _enter(taken, "it has started again")


def obeyed(me: Worker, picture: Picture, observer: Observer, timing: Timing) -> Obeyed:
    """Returns the effects of the messages that this worker has not read; of many messages, only of the first ones.

    Messages that have expired, or that are for another process, are left out.
    """
    orders: list[Order] = []
    messages = tuple(message for message in picture.messages if message.worker == me.name)[:MOST_MESSAGES]
    rebalance = False
    for message in messages:
        if message.number <= me.read:
            continue
        me = replace(me, read=message.number)
        if observer.age_of(message) >= timing.message_life or message.process not in ("", me.process):
            continue
        match message.command:
            case Command.ENABLE | Command.DISABLE:
                me = replace(me, held_off=message.command == Command.DISABLE)
            case Command.KILL:
                orders.append(KillProgram(message.content, "an operator killed it"))
            case Command.SHUT_DOWN:
                orders.append(ShutDown())
            case Command.REBALANCE:
                rebalance = True
            case _:
                orders.append(Notice("unknown message", message.command))
    return Obeyed(me, tuple(orders), messages, rebalance)


def ping(before: Worker, obeyed: Obeyed, *, dormant: bool, closing: bool, due: bool) -> PlanStep | None:
    """Returns the write of the worker's own record; None when nothing has changed and no ping is due.

    Args:
        before: the record as it was read.
        obeyed: the effects of the messages.
        dormant: whether the worker is in its dormant hours.
        closing: whether the worker ends.
        due: a ping is due.
    """
    me = obeyed.me
    status = WorkerStatus.DISABLED if me.held_off or dormant else WorkerStatus.ALIVE
    status = WorkerStatus.CLOSING if closing else status
    events: tuple[HistoryLine, ...] = ()
    if status is not me.status:
        why = "it ends" if closing else "an operator's wish" if me.held_off else "its hours" if dormant else "enabled"
        me = me.become(status, By.WORKER)
        events = (HistoryLine(Subject.WORKER, me.name, status, me.name, why),)
    if me == before and not due and not obeyed.messages:
        return None
    changes: tuple[RecordChange, ...] = (PutRecord(me), *map(DeleteRecord, obeyed.messages))
    return PlanStep(before=obeyed.orders, commit=FleetCommit(changes, events=events), pings=True, idle=me == before)


def leaving(me: Worker) -> PlanStep:
    """Returns the last write of a worker that has ended all of its programs."""
    event = HistoryLine(Subject.WORKER, me.name, WorkerStatus.DEAD, me.name, "it has ended")
    return PlanStep(commit=FleetCommit((PutRecord(me.become(WorkerStatus.DEAD, By.WORKER)),), events=(event,)))


def _enter(record: Worker, why: str) -> PlanStep:
    event = HistoryLine(Subject.WORKER, record.name, record.status, record.name, why)
    return PlanStep(before=(KillAll(),), commit=FleetCommit((PutRecord(record),), events=(event,)), pings=True)
