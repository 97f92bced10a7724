"""Tells that Kinesis throttles the reading of a stream: one line a minute with a count, of however many shards."""

from __future__ import annotations

import logging
import time

from kainite.base.logs import event
from kainite.base.now_and_then import Counted

logger = logging.getLogger(__name__)


class Throttling:
    """The throttled calls of all readers of one stream in this process, which share an event loop."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._counted = Counted(time.monotonic)

    def happened(self, shard: str, error: Exception) -> None:
        """Counts a call that Kinesis has throttled."""
        if times := self._counted.happened():
            event(logger, logging.WARNING, "reading is throttled", stream=self._stream, calls=times, latest=shard,
                  error=error)  # fmt: skip
