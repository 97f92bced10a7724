"""Which worker is given a duty: the one with the least (load + weight), a fifth of it where the affinity matches.

Ties go by name. What waits counts as load: a burst of duties is spread as evenly as one after the other. A worker that
cannot run the kind, or whose capacity would be exceeded, is left out. Affinity is soft: an unknown name is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kainite.fleet.model.records import Duty, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus

AFFINITY_FACTOR = 5


@dataclass(frozen=True, slots=True)
class Assignment:
    """A duty, and the worker that is to have it."""

    duty: Duty
    worker: Worker


def price(work: Work, worker: Worker, load: float) -> float:
    """Returns the price of a duty at a worker that has this load already; the worker with the lowest price gets it."""
    return (load + work.weight) / (AFFINITY_FACTOR if worker.suits(work) else 1)


def choose(duty: Duty, workers: Iterable[Worker], loads: Mapping[str, float], present: str = "") -> Worker | None:
    """Returns the worker that is to have a duty; None when no worker may have it.

    Args:
        duty: the duty.
        workers: those that may be given duties.
        loads: the load of each worker, by the worker's name.
        present: the duty's present worker, which is preferred to an equal one, so that no duty moves without need.
    """
    able = [worker for worker in workers if why_not(duty, worker, loads[worker.name]) is None]
    return min(
        able,
        key=lambda worker: (price(duty.work, worker, loads[worker.name]), worker.name != present, worker.name),
        default=None,
    )


def open_workers(picture: Picture) -> tuple[Worker, ...]:
    """Returns the workers that may be given duties, by name."""
    return tuple(worker for _, worker in sorted(picture.workers.items()) if worker.status is WorkerStatus.ALIVE)


def assignments(picture: Picture) -> tuple[Assignment, ...]:
    """Returns who is to have each duty that is wanted and nobody's: affinity first, then the heaviest.

    A duty that is to be moved goes to its goal, if that worker may be given duties and can run it.
    """
    workers = open_workers(picture)
    loads = {worker.name: picture.load_of(worker) for worker in workers}
    found: list[Assignment] = []
    free = [duty for duty in picture.duties.values() if duty.status is DutyStatus.UNASSIGNED and duty.wanted]
    for duty in sorted(free, key=in_order):
        goals = [worker for worker in workers if worker.name == duty.goal]
        worker = choose(duty, goals, loads) or choose(duty, workers, loads)
        if worker is not None:
            loads[worker.name] += duty.work.weight
            found.append(Assignment(duty, worker))
    return tuple(found)


def in_order(duty: Duty) -> tuple[bool, float, str]:
    """Returns the key by which duties are given out: those with an affinity first, then the heaviest, then by name."""
    return (not duty.work.affinity, -duty.work.weight, duty.name)


def why_not(duty: Duty, worker: Worker, load: float) -> str | None:
    """Returns why a worker that has this load already cannot be given a duty; None when it can."""
    if worker.status is not WorkerStatus.ALIVE:
        return f"is {worker.status}: it is given no duties"
    if duty.work.kind not in worker.kinds:
        return f"cannot run duties of the kind {duty.work.kind!r}"
    if not worker.can_run(duty):
        return "may not run it: its host's files do not declare the duty, and fleetCommands there does not list its command"
    if worker.capacity is not None and load + duty.work.weight > worker.capacity:
        return f"has no room: a load of {load:g}, a capacity of {worker.capacity:g}"
    return None
