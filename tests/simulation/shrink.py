"""Reduces a failing run: leaves faults out, many at a time and then one by one, as long as the run still fails.

What happens to an effect depends on the seed and the effect's name alone (:mod:`simulation.faults`), so leaving a fault
out changes only what follows from it.
"""

from __future__ import annotations

import time

from simulation.running import run_seed
from simulation.world import Verdict


def shrink(failed: Verdict, seconds: float = 60.0) -> tuple[Verdict, frozenset[str]]:
    """Returns the smallest failing run that was found, and which faults it leaves out.

    Args:
        failed: a failing run without anything left out.
        seconds: of real time to spend.
    """
    best, left_out = failed, frozenset[str]()
    end = time.monotonic() + seconds
    size = max(1, len(best.faults) // 2)
    while time.monotonic() < end:
        names = [name for _, name in best.faults]
        progress = False
        for begin in range(0, len(names), size):
            if time.monotonic() >= end:
                break
            without = left_out | set(names[begin : begin + size])
            verdict = run_seed(failed.seed, without, failed.aim)
            if verdict.problem is not None and len(verdict.faults) < len(best.faults):
                best, left_out, progress = verdict, without, True
                break
        if not progress:
            if size == 1:
                break
            size = max(1, size // 2)
        else:
            size = min(size, max(1, len(best.faults) // 2))
    return best, left_out
