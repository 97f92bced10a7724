"""Decides how long the apply job waits for more units at a low rate. Pure.

A micro-batch costs about a tenth of a second of processor time however few units it has. Back to back, micro-batches of
three units keep a processor busy with nine units a second. So small micro-batches begin at intervals, the longer the
fewer units they have; a unit that comes after a rest does not wait.
"""

from __future__ import annotations

from typing import Final

FULL: Final = 20
"""Units of a micro-batch after which the next one begins at once."""


def pause_after(units: int, seconds: float, longest: float) -> float:
    """Returns the seconds until the next micro-batch may begin.

    Args:
        units: of the micro-batch before.
        seconds: since that one began.
        longest: the interval from beginning to beginning for micro-batches of no units; 0: there is none.
    """
    return max(0.0, longest * (1 - units / FULL) - seconds)
