"""The leader's step at a look; each of its writes is under its generation.

=====================================================  ========================================================
what it finds                                          what it writes
=====================================================  ========================================================
a worker that was silent too long                      dead
a duty of a worker that is dead, or that is another    unassigned; stopped where an operator does not want it
process by now
a dead worker that has no duties                       unloaded
a worker that has been unloaded for long               its record is deleted
a message that was not obeyed in time                  it is deleted
a declared duty that is missing, or is declared        its record
otherwise by now
a duty that is wanted and nobody's                     waiting, at the worker that assignment chooses
load that is uneven, now and then or on demand         one duty's goal; that duty's worker stops it, then it is given
                                                       to its goal
=====================================================  ========================================================

The leader never takes a duty from a worker that lives: it asks for it, by the goal, and the worker gives it back
after its program has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kainite.fleet.model.assignment import assignments
from kainite.fleet.model.rebalancing import rebalancing
from kainite.fleet.model.records import Duty, HistoryLine, Lead, Picture, Subject, Worker
from kainite.fleet.model.states import By, DutyStatus, WorkerStatus
from kainite.fleet.steps.observer import Observer
from kainite.fleet.steps.plan import PlanStep
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import MOST_CHANGES, DeleteRecord, FleetCommit, PutRecord, RecordChange
from kainite.fleet.store.items import key_of

FREE = (DutyStatus.UNASSIGNED, DutyStatus.STOPPED, DutyStatus.ERROR)


@dataclass(frozen=True, slots=True)
class Written:
    """A change with its line of history."""

    change: RecordChange
    event: HistoryLine | None = None


class Leading:
    """The memory of a leader while it leads.

    Args:
        timing: the times of the fleet.
        declared: the duties that the settings of this worker declare.
    """

    def __init__(self, timing: Timing, declared: tuple[Duty, ...]) -> None:
        self._timing = timing
        self._declared = declared
        self._rebalanced: float | None = None
        self._asked = False
        self._moves_left = 0

    def ask_for_rebalancing(self) -> None:
        """Makes the next look rebalance."""
        self._asked = True

    def steps(
        self, me: Worker, lead: Lead, picture: Picture, observer: Observer, now: float, *, settled: bool
    ) -> Iterator[PlanStep]:
        """Yields the commits of this look; the leader gives out no duty before it has settled."""
        written = [
            *self._dead(me, picture, observer),
            *_orphans(me, picture),
            *self._unloaded(me, picture, observer),
            *self._expired(picture, observer),
            *self._missing(me, picture),
            *(_given(me, picture) if settled else ()),
            *self._rebalance(me, picture, now),
        ]
        for group in _in_groups(_once_each(written)):
            events = tuple(each.event for each in group if each.event is not None)
            yield PlanStep(commit=FleetCommit(tuple(each.change for each in group), led=lead, events=events))

    def _dead(self, me: Worker, picture: Picture, observer: Observer) -> Iterator[Written]:
        for worker in picture.workers.values():
            silence = observer.silence_of(worker)
            if worker.name != me.name and worker.status.pings and silence >= self._timing.silence:
                dead = worker.become(WorkerStatus.DEAD, By.LEADER)
                yield Written(PutRecord(dead), _of_worker(dead, me, f"no sign of life for {silence:.1f} s"))

    def _unloaded(self, me: Worker, picture: Picture, observer: Observer) -> Iterator[Written]:
        holding = {duty.worker for duty in picture.duties.values() if duty.status.held}
        for worker in picture.workers.values():
            if worker.status is WorkerStatus.DEAD and worker.name not in holding:
                unloaded = worker.become(WorkerStatus.UNLOADED, By.LEADER)
                yield Written(PutRecord(unloaded), _of_worker(unloaded, me, "it has no duties any more"))
            elif worker.status is WorkerStatus.UNLOADED and observer.silence_of(worker) >= self._timing.forget:
                yield Written(DeleteRecord(worker))

    def _expired(self, picture: Picture, observer: Observer) -> Iterator[Written]:
        for message in picture.messages:
            # Twice its life: a worker that is just reading it deletes it itself.
            if observer.age_of(message) >= 2 * self._timing.message_life:
                yield Written(DeleteRecord(message))

    def _missing(self, me: Worker, picture: Picture) -> Iterator[Written]:
        for duty in self._declared:
            stands = picture.duties.get(duty.name)
            if stands is None:
                yield Written(PutRecord(duty), _of_duty(duty, me, "the settings declare it"))
            elif stands.declared and stands.work != duty.work and stands.status in FREE:
                yield Written(PutRecord(replace(stands, work=duty.work)))

    def _rebalance(self, me: Worker, picture: Picture, now: float) -> Iterator[Written]:
        if self._rebalanced is None:
            self._rebalanced = now  # a new leader does not begin by moving
        if self._asked or now - self._rebalanced >= self._timing.rebalance:
            self._asked, self._rebalanced, self._moves_left = False, now, len(picture.duties)
        if not self._moves_left or _moves(picture):
            return
        found = rebalancing(picture)
        if not found.worthwhile:
            self._moves_left = 0
            return
        self._moves_left -= 1
        move = found.moves[0]
        moved = replace(move.duty, goal=move.worker.name)
        yield Written(PutRecord(moved), _of_duty(moved, me, f"rebalancing: it moves to {move.worker.name}"))


def _orphans(me: Worker, picture: Picture) -> Iterator[Written]:
    for duty in picture.duties.values():
        if not duty.status.held:
            continue
        holder = picture.workers.get(duty.worker)
        if holder is not None and holder.incarnation == duty.incarnation and holder.status.pings:
            continue
        status = DutyStatus.UNASSIGNED if duty.wanted else DutyStatus.STOPPED
        freed = duty.become(status, By.LEADER, duty.error)
        yield Written(
            PutRecord(freed), replace(_of_duty(freed, me, f"worker {duty.worker} is gone"), worker=duty.worker)
        )


def _given(me: Worker, picture: Picture) -> Iterator[Written]:
    for each in assignments(picture):
        given = each.duty.given_to(each.worker)
        yield Written(PutRecord(given), _of_duty(given, me, "assigned"))


def _moves(picture: Picture) -> bool:
    """Returns whether a duty is on its way to a worker; one that waits after a failure is not, and may wait on."""
    wanted = [duty for duty in picture.duties.values() if duty.wanted]
    comes = any(duty.status is DutyStatus.WAITING and not duty.error for duty in wanted)
    return comes or any(duty.status is DutyStatus.RUNNING and duty.goal for duty in wanted)


def _once_each(written: Iterable[Written]) -> list[Written]:
    """Returns the first change of each record; a second one would meet another version, and follows next time."""
    return list({key_of(each.change.record): each for each in reversed(list(written))}.values())[::-1]


def _in_groups(written: list[Written]) -> Iterator[list[Written]]:
    size = MOST_CHANGES // 2
    return (written[start : start + size] for start in range(0, len(written), size))


def _of_worker(worker: Worker, by: Worker, why: str) -> HistoryLine:
    return HistoryLine(Subject.WORKER, worker.name, worker.status, by.name, why)


def _of_duty(duty: Duty, by: Worker, why: str) -> HistoryLine:
    return HistoryLine(Subject.DUTY, duty.name, duty.status, by.name, why, duty.worker)
