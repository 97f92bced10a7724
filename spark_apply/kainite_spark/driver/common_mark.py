"""The common mark of several targets, noted in each of them for whoever reads there.

The mark is a transaction id: each unit below it is applied or discarded in each target. Each apply job takes it from
the log, and notes it in its own target, in the table ``kainite_mark``. So a reader who knows a unit's transaction id,
or the mark that another reader has seen, waits in any target until the mark there has passed it, and finds that unit
and all before it in each target; some targets may be ahead.

The log has a unit as unresolved until its owner has copied the outcome of each target, and an outcome is durable only
after the target's commit. So the oldest unit that the log has as unresolved, or the next id where it has none, is
behind what the targets have, never ahead.

Invariants, in each target:

* each unit below the noted mark is applied or discarded in every target (of a target that a person takes as it is, by
  ``--adopt-target``, as far as that person knows);
* the noted mark never falls: a unit that is resolved stays so, and the target keeps the highest number;
* who notes a mark has the fence, and has compared the target with the log: neither an apply job that was taken over nor
  one whose target went back (:mod:`kainite_spark.targets.mark`) notes anything;
* with all jobs alive and nothing to apply, each target has the log's mark within :data:`EVERY_S` and a poll of the log.

What a crash leaves:

=========================================  ===========================================================================
crash                                      then
=========================================  ===========================================================================
before the outcomes are copied             the mark stays behind the unit; the log's next owner copies them
before the mark is noted                   an older mark, which is true; the next job notes the log's at its first round
in the transaction, or its answer is lost  the mark is noted, with the fence advanced, or neither is; the next round
                                           notes it again, under a fence of its own
one target is away                         its units hold the mark back in all targets; no target waits for it
=========================================  ===========================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

EVERY_S: Final = 1.0
"""The least time, in seconds, from one mark that is noted to the next: each is a transaction of the target."""


class CommonMark:
    """Notes the common mark in one target, when it has risen, and not too often.

    Args:
        note: notes it; raises what :meth:`~kainite_spark.targets.contract.Target.note_common_mark` raises.
        clock: returns seconds that only go forward.
    """

    def __init__(self, note: Callable[[int], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._note = note
        self._clock = clock
        self._noted = -1
        self._at: float | None = None

    def look(self, everywhere_below: int, *, now: bool = False) -> None:
        """Notes a mark that is higher than the latest one.

        Args:
            everywhere_below: the common mark.
            now: whether it is noted however short ago the latest one was.
        """
        if everywhere_below <= self._noted:
            return
        if now or self._at is None or self._clock() >= self._at + EVERY_S:
            self._note(everywhere_below)
            self._noted, self._at = everywhere_below, self._clock()
