"""When a worker looks before its turn because it expects a step of another one: it makes a failover fast.

==================================================  ===========================================================
what it has seen                                    then it looks
==================================================  ===========================================================
another worker that pings, or the leader            at the moment at which it has been silent for too long
a wanted duty that is nobody's, whose worker is     every :attr:`Timing.brisk`, for one time-out after it has
gone, or that moves                                 seen that first
itself, leading, just entered                       when it has settled
==================================================  ===========================================================

Signs of life put the first of these off at each look, so a fleet in which nothing happens reads no more often.
"""

from __future__ import annotations

from kainite.fleet.model.records import Duty, Picture, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.steps.observer import FleetLook, Observer
from kainite.fleet.steps.timing import Timing

MARGIN_S = 0.01
"""A look that comes an instant too early has to be repeated."""


class Expecting:
    """Remembers the steps that one worker waits for; a crash only makes the worker wait for its regular look."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._awaited: dict[tuple[str, int], float] = {}
        self._next: float | None = None

    def next_look(self) -> float | None:
        """Returns when the worker has to look at the latest, by the boot clock; None when it expects nothing."""
        return self._next

    def see(self, me: Worker, look: FleetLook, observer: Observer, entered: float) -> None:
        """Takes what a read has shown.

        Args:
            me: this worker's record.
            look: the read.
            observer: has seen it too.
            entered: when this worker entered the fleet.
        """
        picture, now = look.picture, look.began
        self._awaited = {
            key: self._awaited.get(key, now)
            for key in (
                (duty.name, duty.assignment)
                for duty in picture.duties.values()
                if self._awaits(duty, me, picture, observer)
            )
        }
        coming = [entered + self._timing.settle, *self._silences(me, picture, observer)]
        if any(now - since < self._timing.timeout for since in self._awaited.values()):
            coming.append(now + self._timing.brisk)
        self._next = min((moment + MARGIN_S for moment in coming if moment > now), default=None)

    def _silences(self, me: Worker, picture: Picture, observer: Observer) -> list[float]:
        lead, timing = picture.lead, self._timing
        ends = [
            observer.end_of_silence(worker, timing.silence)
            for worker in picture.workers.values()
            if worker.status.pings and (worker.name, worker.incarnation) != (me.name, me.incarnation)
        ]
        if lead is not None and not lead.is_of(me):
            ends.append(observer.end_of_leaders_silence(timing.timeout))
        return ends

    def _awaits(self, duty: Duty, me: Worker, picture: Picture, observer: Observer) -> bool:
        if me.status is not WorkerStatus.ALIVE or not duty.wanted or not me.can_run(duty):
            return False
        if not duty.status.held:
            return duty.status is DutyStatus.UNASSIGNED
        holder = picture.workers.get(duty.worker)
        if holder is None or not duty.belongs_to(holder) or not holder.status.pings:
            return True
        silent = holder.name != me.name and observer.silence_of(holder) >= self._timing.silence
        return silent or duty.goal not in ("", duty.worker)
