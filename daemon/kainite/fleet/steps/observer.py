"""Whose signs of life one worker sees move, by its own clock (:mod:`kainite.base.liveness`).

A worker's sign of life is its record's version; the leader's is the version of its lease, which counts as the sign of
life of the worker that leads, so that a leader need not ping. A version is as old as the *end* of the read that first
showed it, and its age counts to the *beginning* of the read that still shows it: a read that takes long, or a process
that stands still in one, makes nobody look dead.

A lease that changes hands hides signs of life from whoever did not read meanwhile: the former leader's last ones stood
in the lease, and are written over. They are older than the time-out, for which the lease stood still before its
successor's claim; a leader that gives the lease back writes its own record first. So after a change of leader every
worker counts as seen one time-out ago at the earliest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kainite.base.liveness import Sighting, observe
from kainite.fleet.model.records import Picture, Worker, WorkerMessage


@dataclass(frozen=True, slots=True)
class FleetLook:
    """One read of the table.

    Attributes:
        picture: the table's contents at this read.
        began, ended: seconds by this worker's boot clock.
    """

    picture: Picture
    began: float
    ended: float


class Observer:
    """Remembers this worker's observations since its start; they are not stored.

    Args:
        timeout: seconds for which a leader's lease has stood still before another one claims it.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._workers: dict[str, Sighting[tuple[str, str]]] = {}
        self._lead: Sighting[tuple[int, str]] | None = None
        self._messages: dict[tuple[str, int], float] = {}
        self._began = 0.0

    def see(self, look: FleetLook) -> None:
        """Notes the contents of a read of the table."""
        picture, self._began = look.picture, look.began
        self._workers = {
            name: observe(self._workers.get(name), (worker.incarnation, worker.version), look.ended)
            for name, worker in picture.workers.items()
        }
        self._see_lead(look)
        self._messages = {
            key: self._messages.get(key, look.ended)
            for key in ((message.worker, message.number) for message in picture.messages)
        }

    def _see_lead(self, look: FleetLook) -> None:
        lead, before = look.picture.lead, self._lead
        if lead is None:
            self._lead = None
            return
        self._lead = observe(before, (lead.generation, lead.version), look.ended)
        if self._lead is not before and (seen := self._workers.get(lead.worker)) is not None:
            self._workers[lead.worker] = replace(seen, since=look.ended)
        if before is not None and before.counter[0] != lead.generation:
            self._allow_for_unseen_signs(look.ended - self._timeout)

    def _allow_for_unseen_signs(self, until: float) -> None:
        self._workers = {name: replace(seen, since=max(seen.since, until)) for name, seen in self._workers.items()}

    def silence_of(self, worker: Worker) -> float:
        """Returns for how many seconds a worker has given no sign of life, as of the last read."""
        seen = self._workers.get(worker.name)
        return max(0.0, seen.age(self._began)) if seen else 0.0

    def end_of_silence(self, worker: Worker, seconds: float) -> float:
        """Returns when a worker will have been silent for so long, by this worker's clock."""
        seen = self._workers.get(worker.name)
        return (seen.since if seen else self._began) + seconds

    def end_of_leaders_silence(self, seconds: float) -> float:
        """Returns when the leader's lease will have stood still for so long, by this worker's clock."""
        return (self._lead.since if self._lead else self._began) + seconds

    def silence_of_leader(self) -> float:
        """Returns for how many seconds the leader's lease has stood still, as of the last read."""
        return max(0.0, self._lead.age(self._began)) if self._lead else 0.0

    def age_of(self, message: WorkerMessage) -> float:
        """Returns for how many seconds this worker has seen a message."""
        return max(0.0, self._began - self._messages.get((message.worker, message.number), self._began))
