"""Tells how far the watermark is behind while units wait for it, and warns when they wait long."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kainite.base.logs import event
from kainite.base.now_and_then import NowAndThen
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.state.folded import FoldedLog
from kainite.settings import UowEnd, UowSettings

_logger = logging.getLogger(__name__)

LONG_BEHIND_S = 60.0
"""Seconds by which the watermark must be behind for a warning, while units wait for it."""

TELL_S = 60.0
"""Seconds between two warnings."""


class WatermarkLag:
    """Judges the lag of one log's watermark.

    Args:
        watermark: tells how far the shards are read.
        rules: the settings by which units are collected.
        clock: returns seconds that only go forward.
    """

    def __init__(self, watermark: Watermark, rules: UowSettings, clock: Callable[[], float]) -> None:
        self._watermark = watermark
        self._rules = rules
        # A new owner has no report of any shard at first, which deserves no warning.
        self._telling = NowAndThen(TELL_S, clock, wait=LONG_BEHIND_S)

    def held_by(self, state: FoldedLog) -> Held | None:
        """Returns the shard that holds the watermark back; None if no unit waits for the watermark."""
        if self._rules.end is not UowEnd.WATERMARK or not state.open:
            return None
        return self._watermark.held_by()

    def long_held_by(self, state: FoldedLog) -> Held | None:
        """Returns the shard that holds the watermark back where it is far behind, or unknown; None where all is well.

        Each unit waits for the watermark, if only for the grace.
        """
        held = self.held_by(state)
        return held if held is None or held.seconds is None or held.seconds >= LONG_BEHIND_S else None

    def seconds(self, state: FoldedLog) -> float:
        """Returns how far the watermark is behind while units wait for it, else 0; warns now and then if it is far."""
        held = self.held_by(state)
        if held is None:
            return 0.0
        if self.long_held_by(state) is not None and self._telling.is_due():
            event(_logger, logging.WARNING, "units wait for a shard to be read", cause=held, units=len(state.open))
        return held.seconds or 0.0
