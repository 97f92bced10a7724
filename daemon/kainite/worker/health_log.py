"""Tells the log how the daemon is: when it is ready, that it works, which children hang, which shards do not get on.

The health endpoint answers who asks; these events reach who reads the log alone. Each look takes the same report that
the endpoint gives (:mod:`kainite.observe.health`).

==================  ==================================================================================================
event               is told
==================  ==================================================================================================
daemon ready        once, at the first look at which the daemon is ready: the lease table has answered, and the log,
                    where there is one, is reached
daemon at work      each :data:`SUMMARY_S` seconds
child hangs         once, when a child has been silent for ``hungAfterMillis``
child hangs no      when such a child has answered something, has ended, or its shard has gone elsewhere
more
shard stalls        once, when a shard has not got on, or was throttled, for ``hungAfterMillis``, and its child is not
                    the reason
shard stalls no     when it gets on, or has gone elsewhere
more
==================  ==================================================================================================
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from kainite.base.logs import event
from kainite.base.now_and_then import NowAndThen
from kainite.observe.health import Health, HealthReport, ShardHealth

logger = logging.getLogger(__name__)

SUMMARY_S: Final = 60.0
"""Seconds between two summaries."""

LOOK_S: Final = 1.0
"""Seconds between two looks."""

EAGER_S: Final = 0.1
"""Seconds between two looks before the daemon is ready."""


_STALLED: Final = frozenset({Health.STALLED, Health.THROTTLED})


class HealthLog:
    """Tells the log how the daemon is.

    Args:
        report: returns the present report.
        clock: seconds that only go forward.
        became_ready: called once, at the first look at which the daemon is ready.
        about: the fields that say which daemon is ready.
    """

    def __init__(
        self,
        report: Callable[[], HealthReport],
        clock: Callable[[], float],
        became_ready: Callable[[], None],
        **about: str,
    ) -> None:
        self._report = report
        self._became_ready = became_ready
        self._about = about
        self._summary = NowAndThen(SUMMARY_S, clock, wait=SUMMARY_S)
        self._ready = False
        self._hung: Mapping[str, ShardHealth] = {}
        self._stalled: Mapping[str, ShardHealth] = {}
        self._records: Mapping[str, int] = {}

    async def run(self) -> NoReturn:
        """Looks until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S if self._ready else EAGER_S)

    def look(self) -> None:
        """Takes a look, and tells what is to be told."""
        report = self._report()
        if report.ready and not self._ready:
            self._ready = True
            event(logger, logging.INFO, "daemon ready", **self._about)
            self._became_ready()
        self._tell_hung({shard.status.shard: shard for shard in report.shards if shard.health is Health.HUNG})
        self._tell_stalled({shard.status.shard: shard for shard in report.shards if shard.health in _STALLED})
        if self._summary.is_due():
            self._summarize(report)

    def _tell_hung(self, hung: Mapping[str, ShardHealth]) -> None:
        for shard, now in hung.items():
            if shard not in self._hung:
                status = now.status
                event(logger, logging.ERROR, "child hangs", shard=shard, pid=status.pid, action=status.action,
                      silent=round(status.silent or 0.0), stderr=status.stderr or None,
                      advice="timeoutInSeconds ends such a child")  # fmt: skip
        for shard, before in self._hung.items():
            if shard not in hung:
                event(logger, logging.INFO, "child hangs no more", shard=shard, pid=before.status.pid)
        self._hung = hung

    def _tell_stalled(self, stalled: Mapping[str, ShardHealth]) -> None:
        for shard, now in stalled.items():
            if shard not in self._stalled:
                event(logger, logging.ERROR, "shard stalls", shard=shard, why=now.why, stderr=now.status.stderr or None)
        for shard in self._stalled:
            if shard not in stalled:
                event(logger, logging.INFO, "shard stalls no more", shard=shard)
        self._stalled = stalled

    def _summarize(self, report: HealthReport) -> None:
        event(logger, logging.INFO, "daemon at work", **self._figures(report))

    def _figures(self, report: HealthReport) -> dict[str, Any]:
        records = {shard.status.shard: shard.status.records for shard in report.shards}
        # A consumer that was started anew since counts from 0.
        news = sum(max(0, now - self._records.get(shard, 0)) for shard, now in records.items())
        self._records = records
        behind = [shard.status.behind_ms for shard in report.shards if shard.status.behind_ms is not None]
        return {
            "shards": len(report.shards),
            "records": news,
            "behind_ms": max(behind, default=None),
            "log": report.worker.log.value,
            "problems": "; ".join(report.problems) or None,
        }
