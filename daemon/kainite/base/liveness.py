"""Liveness by a counter: whether another party is alive, by whether a value that it keeps changing still changes.

The party may be a lease's owner (the lease's counter), a KCL 3 leader (its lock's version, its report's time) or the
owner of a log partition (its head's version). The rule is the same for all:

* A counter's age is the time since the observer first saw its present value, by the observer's own clock. Clocks of
  two hosts are never compared, so the clock must not run backwards, and must run on while the host is suspended.
* Every other value is a movement, also a lower one: versions are random tokens.
* The first observation is no movement. The counter's age is 0 then, unless the caller knows better and makes the
  first :class:`Sighting` itself.
* A counter has expired when its age has reached the timeout; the timeout itself belongs to the expired time.

Pure: the clock's time is an argument everywhere. Nothing is stored; after a crash every age begins at 0 again, which
delays a takeover and never hastens one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Sighting(Generic[C]):
    """A counter as it was observed last.

    Attributes:
        counter: its value.
        since: when the observer first saw this value (the observer's clock, seconds).
        moved: the observer has seen another value before this one.
    """

    counter: C
    since: float
    moved: bool = False

    def age(self, now: float) -> float:
        """Returns for how many seconds the counter has stood still at ``now``."""
        return now - self.since

    def expired(self, now: float, timeout: float) -> bool:
        """Returns whether the counter has stood still for ``timeout`` seconds at ``now``."""
        return self.age(now) >= timeout


def observe(last: Sighting[C] | None, counter: C, now: float) -> Sighting[C]:
    """Returns what is known after the counter was read at ``now``.

    Args:
        last: what was known before; None at the first observation.
        counter: the value that was read; any value that compares by ``==``.
        now: the observer's clock, seconds.
    """
    if last is None:
        return Sighting(counter, now)
    return last if last.counter == counter else Sighting(counter, now, moved=True)
