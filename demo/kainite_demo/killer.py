"""When to kill what: random moments, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 2


@dataclass(frozen=True, slots=True, order=True)
class Kill:
    """Kill ``victim`` this many seconds after the load began."""

    at: float
    victim: str


def plan(victims: Sequence[str], seconds: float, seed: int) -> list[Kill]:
    """Each victim is killed :data:`ROUNDS` times, once in each equal part of the run, in order of time."""
    choice = random.Random(seed)
    part = seconds / ROUNDS
    return sorted(Kill(part * (turn + choice.random()), victim) for victim in victims for turn in range(ROUNDS))
