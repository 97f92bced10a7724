"""Decides which process to kill when, at random moments of its work; a seed gives the same moments again. Pure.

Killing a process that only starts tests nothing. So each one is killed a random time after its first
result since its last start.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

ROUNDS = 2


@dataclass(slots=True)
class _Victim:
    """A process to kill: the delays of its kills to come, its progress at its last start, the next kill's time."""

    delays: list[float]
    done: int = 0
    due: float | None = None


class Killer:
    """Chooses the victims; the caller kills them and starts them again.

    Args:
        victims: names of processes; none for a run without kills.
        longest_delay: seconds of work that a process may get done before it is killed.
        seed: the seed of the delays.
    """

    def __init__(self, victims: tuple[str, ...], longest_delay: float, seed: int) -> None:
        choice = random.Random(seed)
        self._victims = {name: _Victim([choice.uniform(0, longest_delay) for _ in range(ROUNDS)]) for name in victims}

    def choose(self, now: float, done: Mapping[str, int]) -> list[str]:
        """Returns the processes to kill now.

        Args:
            now: seconds on any clock that never goes back.
            done: the units that each process has handled in all.
        """
        return [name for name, victim in self._victims.items() if _is_due(victim, now, done[name])]


def _is_due(victim: _Victim, now: float, done: int) -> bool:
    if victim.due is None and victim.delays and done > victim.done:
        victim.due = now + victim.delays.pop()
    if victim.due is None or now < victim.due:
        return False
    victim.due, victim.done = None, done
    return True
