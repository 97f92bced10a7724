"""When duties are moved so that the load is even, and which.

All duties are given out anew on paper, each with its present worker where that is as good. The *score* tells what that
would change: for each worker the larger load over the smaller one, equal loads count 0 and a worker that has nothing in
one of the two 100, and of these the mean. From :data:`WORTHWHILE` on it is worth the moves. One duty moves at a time,
and is stopped before it starts elsewhere; the next round looks again.
"""

from __future__ import annotations

from dataclasses import dataclass

from kainite.fleet.model.assignment import Assignment, choose, in_order, open_workers
from kainite.fleet.model.records import Picture

WORTHWHILE = 1.5
FROM_NOTHING = 100.0


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """A distribution of the duties that would be better than the present one.

    Attributes:
        moves: the duties that would move, the most useful first.
        score: how much that would change.
    """

    moves: tuple[Assignment, ...]
    score: float

    @property
    def worthwhile(self) -> bool:
        return bool(self.moves) and self.score >= WORTHWHILE


def rebalancing(picture: Picture) -> Rebalancing:
    """Returns the duties that would move if all duties were given out again."""
    workers = open_workers(picture)
    present = {worker.name: picture.load_of(worker) for worker in workers}
    planned = dict.fromkeys(present, 0.0)
    held = [duty for worker in workers for duty in picture.duties_of(worker)]
    moves: list[Assignment] = []
    for duty in sorted(held, key=in_order):
        worker = choose(duty, workers, planned, duty.worker)
        if worker is None:
            planned[duty.worker] += duty.work.weight
            continue
        planned[worker.name] += duty.work.weight
        if worker.name != duty.worker:
            moves.append(Assignment(duty, worker))
    changes = [_change(present[name], planned[name]) for name in present]
    return Rebalancing(tuple(moves), sum(changes) / len(changes) if changes else 0.0)


def _change(old: float, new: float) -> float:
    small, large = sorted((old, new))
    if small == large:
        return 0.0
    return large / small if small else FROM_NOTHING
