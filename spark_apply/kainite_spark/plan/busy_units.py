"""The units that the target was busy with: when each of them is tried again. Pure.

A unit finds the target *busy* when it waits for a locked row longer than the target allows. Each such try costs a task
about a second, so tries are paused:

* a *delayed* unit is tried again after a pause that doubles with each try, in a micro-batch of delayed units
  (:class:`DelayedUnits`). While other units can run, these micro-batches take at most a fifth of the time;
* with ``targetConsistency=prefix`` all units wait for a busy one for some time before it is delayed
  (:class:`UnitInFront`).

A delayed unit is *due* at a certain time, or *elsewhere*: it runs, will be tried again, or waits. When the target is
busy with it again, it gets a new time, and its number of tries goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kainite.base.retry import Backoff

DELAYS: Final = Backoff.doubling(1.0, 60.0)
"""Pauses between the tries of a delayed unit."""

MAX_DELAYED: Final = 8
"""The most delayed units of a micro-batch, so that it ends within seconds."""

REST: Final = 4
"""The time for other units between two micro-batches of delayed units, in multiples of the time that the first took."""

PATIENCE: Final = 60.0
"""How long all units wait for busy ones with ``targetConsistency=prefix``, in seconds: for all busy units together.

The seconds come back as fast as they were spent, while no unit is waited for. So a unit that is stuck behind several
locked rows waits a minute in all, and not a minute for each row.
"""

_IN_FRONT: Final = Backoff.doubling(0.5, 2.0)
"""Pauses between the tries of a busy unit for which all others wait."""


@dataclass(slots=True)
class _Delay:
    """How often the target was busy with a unit, and when it is tried next; ``due`` is None while it is elsewhere."""

    tries: int
    due: float | None


class DelayedUnits:
    """The delayed units, by transaction id, in the order in which they were delayed first."""

    def __init__(self) -> None:
        self._delays: dict[int, _Delay] = {}
        self._rests_until = float("-inf")

    def __len__(self) -> int:
        return len(self._delays)

    def __iter__(self) -> Iterator[int]:
        return iter(self._delays)

    def __contains__(self, tid: int) -> bool:
        return tid in self._delays

    def delay(self, tid: int, now: float) -> None:
        """Notes that the target was busy with a unit."""
        tries = self._delays[tid].tries + 1 if tid in self._delays else 1
        self._delays[tid] = _Delay(tries, now + DELAYS.after(tries))

    def remove(self, tid: int) -> bool:
        """Forgets a unit; returns whether it was delayed."""
        return self._delays.pop(tid, None) is not None

    def take_due(self, now: float, *, others_wait: bool) -> list[int]:
        """Returns the units of the next micro-batch of delayed units, in log order; they are elsewhere from now on.

        Args:
            now: seconds by a clock that only goes forward.
            others_wait: whether other units wait, which then have their share of the time first.
        """
        if others_wait and now < self._rests_until:
            return []
        longest = sorted((delay.due, tid) for tid, delay in self._delays.items() if delay.due is not None)
        chosen = sorted(tid for due, tid in longest[:MAX_DELAYED] if due <= now)
        for tid in chosen:
            self._delays[tid].due = None
        return chosen

    def ran(self, began: float, now: float, not_tried: Iterable[int]) -> None:
        """Notes the end of a micro-batch of delayed units; units that were not tried are due at once."""
        self._rests_until = now + REST * (now - began)
        for tid in not_tried:
            self._delays[tid].due = now


class UnitInFront:
    """The busy unit for which all others wait; there is at most one.

    Attributes:
        tid: the unit; None while there is none.
    """

    def __init__(self) -> None:
        self.tid: int | None = None
        self._due = 0.0
        self._tries = 0
        self._spent = 0.0  # seconds that all units have waited, as of ``_counted``
        self._counted = 0.0

    def pauses(self, now: float) -> bool:
        """Returns whether there is such a unit, and its next try is not due yet."""
        self._count(now)
        return self.tid is not None and now < self._due

    def busy(self, tid: int, now: float) -> float:
        """Notes that the target was busy with a unit; returns for how many seconds all others have waited.

        They may have waited for another unit before, so short a time ago that the seconds have not come back.
        """
        self._count(now)
        if self.tid != tid:
            self.tid, self._tries = tid, 0
        self._tries += 1
        self._due = now + _IN_FRONT.after(self._tries)
        return self._spent

    def leave(self, tid: int) -> None:
        """Notes that no unit waits for ``tid`` any more; does nothing if it is another unit than this one."""
        if self.tid == tid:
            self.tid = None

    def _count(self, now: float) -> None:
        passed, self._counted = now - self._counted, now
        self._spent = max(0.0, self._spent + (passed if self.tid is not None else -passed))
