"""Tells of peers that a port refuses or cuts: counts each, and logs few of them, so that a flood fills no disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kainite.base.logs import event
from kainite.observe import metric
from kainite.observe.meter import Meter

_logger = logging.getLogger(__name__)

BURST: Final = 10
"""How many refusals are logged at once."""

EVERY_S: Final = 5.0
"""Seconds between two lines after that; a line says how many went before it without one."""


class Refusals:
    """The refusals of one port.

    Args:
        meter: counts them.
        clock: seconds, never running backwards.
    """

    def __init__(self, meter: Meter, clock: Callable[[], float]) -> None:
        self._meter = meter
        self._clock = clock
        self._lines = float(BURST)
        self._at = clock()
        self._untold = 0

    def tell(self, place: str, user: str, why: str) -> None:
        """Counts a refusal, and logs it unless many were logged just now.

        Args:
            place: where the peer connects from.
            user: as whom the peer was let in; empty for one that was not.
            why: the cause.
        """
        self._meter.observe(metric.LOG_REFUSED)
        now = self._clock()
        self._lines = min(float(BURST), self._lines + (now - self._at) / EVERY_S)
        self._at = now
        if self._lines < 1:
            self._untold += 1
            return
        self._lines -= 1
        untold, self._untold = self._untold, 0
        event(_logger, logging.WARNING, "log peer cut", peer=place, user=user or None, cause=why,
              others=untold or None)  # fmt: skip
