"""Tells which number complete units wait for (``uowOrder=dense``), and warns when they wait long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kainite.base.logs import event
from kainite.base.now_and_then import NowAndThen
from kainite.log.collecting.standing import next_number
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.state.folded import FoldedLog
from kainite.settings import UowOrder, UowSettings

_logger = logging.getLogger(__name__)

LONG_S: Final = 30.0
"""Seconds for which a number must be awaited before it is told: the shards may be read as far by then."""

TELL_S: Final = 60.0
"""Seconds between two warnings."""


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """The number that complete units wait for.

    Attributes:
        number: the number.
        brings: the unit that has it and is not complete; None where none is known.
        waiting: how many complete units wait.
        by: the shard that is read least far.
    """

    number: int
    brings: str | None
    waiting: int
    by: Held

    def __str__(self) -> str:
        unit = f"unit {self.brings} has it and is not complete" if self.brings else "no unit with it has come"
        return (
            f"{self.waiting} complete units wait for number {self.number}: {unit}; {self.by}; if it never comes, "
            f"kainite log skip {self.number}"
        )


class TurnLag:
    """Judges for how long complete units wait for one number.

    Args:
        watermark: tells how far the shards are read.
        rules: the settings by which units are collected.
        clock: returns seconds that only go forward.
    """

    def __init__(self, watermark: Watermark, rules: UowSettings, clock: Callable[[], float]) -> None:
        self._watermark = watermark
        self._rules = rules
        self._clock = clock
        self._telling = NowAndThen(TELL_S, clock)
        self._awaited: tuple[int, float] | None = None  # a number, and since when units wait for it

    def look(self, state: FoldedLog) -> None:
        """Notes the number that is awaited now; warns once in a while of a number that is awaited for long."""
        number = next_number(state, self._rules)
        if self._rules.order is not UowOrder.DENSE or not state.ready or number in state.ready:
            self._awaited = None
        elif self._awaited is None or self._awaited[0] != number:
            self._awaited = number, self._clock()
        held = self.held_by(state)
        if held is not None and self._telling.is_due():
            event(_logger, logging.WARNING, "units wait for a number", cause=held)

    def held_by(self, state: FoldedLog) -> HeldTurn | None:
        """Returns what complete units have waited for since long; None where they have not."""
        if self._awaited is None or self._clock() - self._awaited[1] < LONG_S:
            return None
        number = self._awaited[0]
        brings = next((unit.uow for unit in state.open.values() if unit.number == number), None)
        return HeldTurn(number, brings, len(state.ready), self._watermark.held_by())
