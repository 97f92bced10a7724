"""The latest micro-batches of the apply job, from the outcomes that it appends: a bounded ring. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kainite.log.format.entry import Batch, StatusMeta, UnitStatus

MOST: Final = 60


@dataclass(slots=True)
class ObservedMicroBatch:
    """A micro-batch as its outcomes show it.

    Attributes:
        generation, number: the target's mark: the apply job's generation and the micro-batch's number in it; None
            where no unit of it was committed.
        at_ms: when its outcomes were appended, by the apply job's clock.
        statuses: how many outcomes of each status it had; a delayed unit counts as in progress.
        lanes: how many units each job instance committed.
    """

    generation: int | None
    number: int | None
    at_ms: int
    statuses: Counter[str] = field(default_factory=Counter)
    lanes: Counter[int] = field(default_factory=Counter)

    @property
    def committed(self) -> int:
        return self.statuses[UnitStatus.COMMITTED]

    @property
    def others(self) -> int:
        """Returns how many outcomes are no commits."""
        return self.statuses.total() - self.committed


class MicroBatchRing:
    """The ring."""

    def __init__(self) -> None:
        self._kept: deque[ObservedMicroBatch] = deque(maxlen=MOST)

    def note(self, batches: Iterable[Batch]) -> None:
        """Notes batches of the outcomes partition, in their order."""
        for batch in batches:
            for entry in batch.entries:
                if isinstance(entry.meta, StatusMeta) and entry.meta.outcomes:
                    self._note(entry.meta, batch.time_ms)

    def latest(self) -> Sequence[ObservedMicroBatch]:
        """Returns the micro-batches, the oldest first."""
        return tuple(self._kept)

    def _note(self, meta: StatusMeta, time_ms: int) -> None:
        generation, number = meta.mark or (None, None)
        last = self._kept[-1] if self._kept else None
        if last is None or number is None or (last.generation, last.number) != (generation, number):
            last = ObservedMicroBatch(generation, number, time_ms)
            self._kept.append(last)
        for outcome in meta.outcomes:
            last.statuses[outcome.status.value] += 1
            if outcome.status is UnitStatus.COMMITTED and outcome.instance is not None:
                last.lanes[outcome.instance] += 1
