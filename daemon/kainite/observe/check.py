"""A check: one part's health by name, with its cause and what mends it. Pure.

``/health`` of a process and ``kainite status`` give the same checks, each from what it knows
(:mod:`kainite.observe.health`, :mod:`kainite.verdict`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, Final

STREAM: Final = "stream "
"""What the name of a check on one stream among several begins with; the name or ARN in the settings follows."""


class Level(IntEnum):
    """How bad a check is; the worst one is the verdict on the whole."""

    OK = 0
    NOTE = 1  # worth knowing, and no trouble
    UNKNOWN = 2  # what it takes to tell could not be read
    DEGRADED = 3  # work goes on, and some of it waits for a person
    BROKEN = 4  # work stands still

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def is_trouble(self) -> bool:
        return self >= Level.DEGRADED


@dataclass(frozen=True, slots=True)
class Check:
    """The health of one part.

    Attributes:
        name: the part, such as ``owner`` or ``failed units``.
        level: how bad it is.
        cause: why, in a sentence.
        remedy: what to do; empty where there is nothing to do.
    """

    name: str
    level: Level
    cause: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return {**asdict(self), "level": self.level.word}

    @classmethod
    def told(cls, answer: Mapping[str, Any]) -> Check:
        """Returns the check that another process has told by :meth:`as_json`; of a level unknown here: UNKNOWN."""
        level = next((level for level in Level if level.word == answer.get("level")), Level.UNKNOWN)
        return cls(str(answer.get("name", "")), level, str(answer.get("cause", "")), str(answer.get("remedy", "")))


def worst(checks: Iterable[Check]) -> Level:
    """Returns the level of the worst check; OK without checks."""
    return max((check.level for check in checks), default=Level.OK)


def spoken(seconds: float) -> str:
    """Returns a length of time for people: ``0.4 s``, ``75 s``, ``12 min``, ``3.5 h``."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
