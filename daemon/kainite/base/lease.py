"""A lease with generations: how long its holder may act, and when another party may claim it. Pure.

A lease is one record, and whoever writes it last holds it. The owner of a log partition holds the partition's head
(:mod:`kainite.owner.mount`), the fleet's leader its lead (:mod:`kainite.fleet.steps.member`). Each step is one write,
on the condition that the record still has the version that its writer has read; the store gives or takes a version
that is unlike any other.

========  ==============================================  =============================================================
step      what is written                                 a crash after the write leaves
========  ==============================================  =============================================================
claim     the claimant's name, and the generation that    a lease that stands still. The former holder's next write
          was read, raised by one; where the lease was    meets another version, and is refused. Others claim the
          released, its holder is provably gone, or       lease when it has stood still for its whole time
          :func:`seconds_left` is 0 or less
renew     another version, and the same generation        the same, and its time counts from when others see the
                                                          renewal
release   that nobody holds it; the generation stays      a lease that anybody may claim at once
========  ==============================================  =============================================================

A write whose answer was lost may have been done. Then the record has the holder's own generation and a version that
the holder does not expect: it reads, and goes on with that version, or finds another generation and gives up.

Invariants:

* The generation rises with each claim and never falls; what a former holder does under an older one is refused.
* The holder acts only within the lease's time after its last successful write *began* (:class:`Tenure`). A claimant
  waits for the lease's time after it has first *seen* the version that this write left, which is later. Both measure
  by clocks of their own. So the two never act at the same time, while no clock runs faster than the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from kainite.base.liveness import Sighting

NEVER = float("-inf")

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Tenure:
    """The time in which the holder of a lease may act.

    Attributes:
        seconds: for which the lease holds.
        since: when the last successful write of the lease began (the holder's clock); :data:`NEVER` without one.
    """

    seconds: float
    since: float = NEVER

    @property
    def end(self) -> float:
        """Returns until when the holder may act, by its own clock."""
        return self.since + self.seconds

    def holds(self, now: float) -> bool:
        """Returns whether the holder may act at ``now``; the end itself belongs to the time after it."""
        return now < self.end

    def renewed(self, began: float) -> Tenure:
        """Returns the tenure after a successful write that began at ``began``; an earlier write takes nothing back."""
        return replace(self, since=max(self.since, began))

    def given_up(self) -> Tenure:
        """Returns the tenure of a holder that has released the lease, or does not know whether it holds it."""
        return replace(self, since=NEVER)


def seconds_left(seen: Sighting[C], seconds: float, now: float) -> float:
    """Returns the seconds until a lease may be claimed whose holder is silent; 0 or less: it may be claimed now.

    Args:
        seen: the version of the lease, as the claimant has observed it.
        seconds: for which the lease holds.
        now: the claimant's clock.
    """
    return seen.since + seconds - now
