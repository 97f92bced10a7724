"""A member's metrics of a shared log: the member's part in the log, and the appends and units that wait there.

All are gauges, sampled every :data:`SAMPLE_S`. Gauges that describe an owner are 0 at every other member.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.owner.owner import LogOwner

SAMPLE_S: Final = 5.0
"""Seconds between two samples."""


class Sampled(Protocol):
    """A member, as far as the metrics need it."""

    @property
    def owner(self) -> LogOwner | None:
        """Returns the log's owner, if it is here and serves."""

    @property
    def is_reached(self) -> bool:
        """Returns whether there is a log to append to."""

    @property
    def peers(self) -> int:
        """Returns how many members append through this one."""

    @property
    def unanswered(self) -> int:
        """Returns the bytes of the peers' appends that are not answered yet."""

    @property
    def settled_for(self) -> float:
        """Returns for how many seconds the log has been at its present owner; 0 while no owner is reached."""


def sample(meter: Meter, member: Sampled) -> None:
    """Sets the gauges of a member's part in the log."""
    owner = member.owner
    appends, size = owner.queued if owner is not None else (0, 0)
    meter.observe(metric.LOG_MEMBER, True)
    meter.observe(metric.LOG_OWNED, owner is not None)
    meter.observe(metric.LOG_FOLLOWED, member.is_reached and owner is None)
    meter.observe(metric.LOG_PEERS, member.peers if owner is not None else 0)
    meter.observe(metric.LOG_CREDIT, member.unanswered if owner is not None else 0)
    meter.observe(metric.LOG_WAITING, appends)
    meter.observe(metric.LOG_WAITING_BYTES, size)
    meter.observe(metric.LOG_SETTLED, member.settled_for * 1000)


async def sample_on(meter: Meter, member: Sampled) -> None:
    """Samples a member until cancelled."""
    while True:
        sample(meter, member)
        await asyncio.sleep(SAMPLE_S)
