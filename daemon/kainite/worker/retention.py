"""Tells the meter for how long the stream keeps its records, so that an alert can compare the lag of a shard with it.

The time is asked for at the start and once a day, since it may be changed while the daemon runs. Where Kinesis does
not answer, the last one stands until it does. A role that may not ask has no such figure: the daemon has said so when
it asked for the stream's identity, which is the same call (:mod:`kainite.worker.units_of_work`).
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.observe.meter import Meter
from kainite.observe.metric import STREAM_RETENTION

EVERY_S: Final = 86_400.0
"""Seconds between two answers."""
AGAIN_S: Final = 300.0
"""Seconds until the next question after one that had no answer, although boto3 repeated it."""


class Retaining(Protocol):
    """A stream, as far as its retention is asked for."""

    def retention(self) -> float:
        """Returns the seconds for which the stream keeps records."""


async def tell_retention(stream: Retaining, meter: Meter, every: float = EVERY_S, again: float = AGAIN_S) -> None:
    """Observes the stream's retention until cancelled, or until the role turns out not to have the right to ask.

    Args:
        stream: the stream.
        meter: takes the metric.
        every: seconds between two answers.
        again: seconds until the next question after one without an answer.
    """
    while True:
        try:
            seconds = await asyncio.to_thread(stream.retention)
        except StreamUnavailableError:
            await asyncio.sleep(again)
        except StreamError:
            return
        else:
            meter.observe(STREAM_RETENTION, seconds * 1000)
            await asyncio.sleep(every)
