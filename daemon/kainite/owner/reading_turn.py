"""Which shards are read on while too many units are being collected: those that are least far, by Kinesis' clock.

A unit is being collected until its last part, or with ``uowOrder=dense`` the number before its own, has come. What it
waits for is in records that are not read yet, so reading must not stop where it is. But a shard that is far ahead of
the others brings only more units that wait. So while the units that are being collected reach the bound
(:func:`~kainite.log.state.backlog.collects_too_many`), a shard waits before its next batch if its last record that is
done with arrived later than the *hold*:

    hold = the least far that any shard is read + SLACK_MS

where a shard that waits for its parents does not count, and a shard of which nothing is known is not read at all. The
shards are then read nearly in the order of arrival, and memory is taken for what arrived within SLACK_MS, instead of
for all that is ahead of the slowest shard.

**Why reading never stops for good.**

1. The shard that is least far is read on: what it is compared with is its own progress and SLACK_MS. A shard that has
   no progress to compare, since its reader has just begun, is read on too.
2. So the least progress grows, by records or, where the shard has none left, by its tip, which grows with the clock.
   Each shard is read up to its tip in the end, and all that is on the stream comes. With it come the awaited parts; or
   all shards are near their tips, and the time of a unit that waits counts (:mod:`kainite.log.collecting.waiting`).
3. A child shard that waits for its parent does not hold the parent: it does not count until the parent is at SHARD_END.
4. A shard that cannot be read (its records break every child, nobody holds its lease) holds all others. Nothing that
   they bring could complete what waits for it. :meth:`ReadingTurn.backlog` names it, in the log, in health and to all
   members; a person mends it, or skips its records.
5. An append that a child's call has led to never waits for this: it would hold the memory for emitted lines, the
   connection and the owner's turn that the slowest shard's append needs. Only the next batch is not handed out. So the
   bound is passed by what one call of each shard brings.

The bound is passed, too, where nothing that is on the stream ends the units: they are more than the bound until the
shards are at their tips, and time out then. The number that they wait for is told (:mod:`kainite.owner.turn_lag`), and
``kainite log skip`` gives it up at once.

Nothing here is durable. A new owner knows no shard's progress until the readers report, within a second or two.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final

from kainite.base.logs import event
from kainite.base.now_and_then import NowAndThen
from kainite.log.collecting.watermark import Watermark
from kainite.log.state.backlog import OpenBacklog, collects_too_many, open_bytes
from kainite.log.state.folded import FoldedLog
from kainite.owner.turn_lag import TurnLag
from kainite.settings import LogSettings

_logger = logging.getLogger(__name__)

SLACK_MS: Final = 30_000
"""How far ahead of the slowest shard a shard is read, milliseconds.

Longer than reports and tips are old, so that a shard at its tip holds no other; short against the lag of a shard.
"""

TELL_S: Final = 60.0
"""Seconds between two warnings."""


class ReadingTurn:
    """Decides how far shards are read.

    Args:
        watermark: tells how far the shards are read.
        turns: tells which number units wait for.
        settings: the bounds.
        clock: returns seconds that only go forward.
    """

    def __init__(self, watermark: Watermark, turns: TurnLag, settings: LogSettings, clock: Callable[[], float]) -> None:
        self._watermark = watermark
        self._turns = turns
        self._settings = settings
        self._telling = NowAndThen(TELL_S, clock)

    def hold_ms(self, state: FoldedLog) -> int | None:
        """Returns the arrival beyond which no shard is to be read further; None while all may be read."""
        if not collects_too_many(state, self._settings):
            return None
        least = self._watermark.read_until_ms()
        return max(0, math.floor(least) + SLACK_MS) if math.isfinite(least) else 0

    def backlog(self, state: FoldedLog) -> OpenBacklog | None:
        """Returns the units that are being collected while they hold shards; None while they hold none."""
        if not collects_too_many(state, self._settings):
            return None
        held = self._turns.held_by(state) or self._watermark.held_by()
        return OpenBacklog(len(state.open), open_bytes(state), str(held))

    def tell(self, state: FoldedLog) -> None:
        """Warns now and then while too many units are being collected."""
        backlog = self.backlog(state)
        if backlog is not None and self._telling.is_due():
            event(_logger, logging.WARNING, "too many units are being collected", cause=backlog)
