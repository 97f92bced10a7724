"""The extraction's status: what it has done, how far its source is ahead, and whether a person should look.

The code that does the work notes it here; the metrics are sampled from here, and ``/health`` is judged from here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.words import counted
from kainite.extract.offsets.place import SourceLag
from kainite.extract.output.sink import Totals
from kainite.observe import metric
from kainite.observe.check import spoken
from kainite.observe.health import ShardHealth
from kainite.observe.meter import SILENT, Meter

SAMPLE_S: Final = 1.0
"""Seconds between two samples of the gauges."""


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """The health of an extraction at one moment.

    Attributes:
        opened: whether the stream's shards were listed.
        quiet: seconds since the extractor last answered, or since the start.
        quiet_limit: seconds of that from which on the extraction stands still; None where silence is no sign.
        failures: failures of the extractor in a row.
        trouble: the last of these failures.
        away: why the extractor waits for its source; empty when it does not.
        records: how many messages were put on the stream since the start.
        waiting: bytes of messages that are not on the stream yet.
        lag: how far the source is ahead, by the extractor's word.
    """

    opened: bool
    quiet: float
    quiet_limit: float | None
    failures: int = 0
    trouble: str = ""
    records: int = 0
    waiting: int = 0
    lag: SourceLag | None = None
    away: str = ""

    @property
    def ready(self) -> bool:
        return self.opened and not self.failures and not self.away

    @property
    def healthy(self) -> bool:
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """Returns the reasons for which a person should look."""
        times = counted(self.failures, "time")
        found = [f"the extractor has failed {times} in a row: {self.trouble}"] if self.failures else []
        if self.away:
            found.append(f"the extractor waits for its source: {self.away}")
        if self.quiet_limit is not None and self.quiet > self.quiet_limit:
            found.append(f"the extractor has answered nothing for {spoken(self.quiet)}")
        return tuple(found)

    @property
    def shards(self) -> Sequence[ShardHealth]:
        return ()

    def as_json(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "ready": self.ready,
            "quiet_seconds": round(self.quiet, 1),
            "records": self.records,
            "waiting_bytes": self.waiting,
            "source": None if self.lag is None else self.lag.as_json(),
            "problems": list(self.problems),
        }


class ExtractStatus:
    """Gathers what the extraction's tasks know, on one event loop.

    Args:
        totals: what has been put; read whenever the gauges are sampled.
        waiting: returns the bytes that are not on the stream yet.
        quiet_limit: seconds without an answer from which on the extraction stands still; None for no limit.
        meter: takes the metrics.
        clock: a monotonic clock, seconds.
        wall_clock: seconds since the epoch, as the source's commit times.
    """

    def __init__(
        self,
        totals: Totals,
        waiting: Callable[[], int] = lambda: 0,
        quiet_limit: float | None = None,
        meter: Meter = SILENT,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.meter = meter
        self.waiting = waiting
        self._totals = totals
        self._quiet_limit = quiet_limit
        self._clock = clock
        self._wall_clock = wall_clock
        self._opened = False
        self._answered_at = clock()
        self._failures = 0
        self._trouble = ""
        self._away = ""
        self._lag: SourceLag | None = None
        self._records_counted = 0

    def opened(self) -> None:
        """Notes that the stream's shards were listed."""
        self._opened = True

    def heard(self) -> None:
        """Notes a message of the extractor."""
        self._answered_at = self._clock()

    def answered(self, lag: SourceLag | None) -> None:
        """Notes an answer of the extractor, and how far the source is ahead, where the answer says it."""
        self._answered_at = self._clock()
        self._failures, self._trouble, self._away = 0, "", ""
        if lag is not None:
            self._lag = lag

    def failed(self, why: str) -> None:
        """Notes a failure of the extractor."""
        self._failures += 1
        self._trouble, self._away = why, ""
        self.meter.observe(metric.EXTRACT_FAILURES)

    def away(self, why: str) -> None:
        """Notes that the extractor waits for its source, which is no failure."""
        self._away = why

    def report(self) -> ExtractReport:
        """Returns the health at this moment."""
        return ExtractReport(
            self._opened, self._clock() - self._answered_at, self._quiet_limit, self._failures, self._trouble,
            self._totals.records, self.waiting(), self._lag, self._away,
        )  # fmt: skip

    async def sampling(self) -> None:
        """Samples the gauges until it is cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(SAMPLE_S)

    def sample(self) -> None:
        """Observes the gauges, and the counter of records since the last sample."""
        report, observe = self.report(), self.meter.observe
        observe(metric.EXTRACT_RECORDS, report.records - self._records_counted)
        self._records_counted = report.records
        observe(metric.EXTRACT_QUIET, report.quiet * 1000)
        observe(metric.EXTRACT_WAITING_BYTES, report.waiting)
        if report.lag is not None:
            self._sample_source(report.lag)

    def _sample_source(self, lag: SourceLag) -> None:
        if lag.commit_time is not None:
            age = max(0.0, self._wall_clock() - lag.commit_time / 1e9)
            self.meter.observe(metric.EXTRACT_NEWEST_COMMIT_AGE, age * 1000)
        if lag.held_bytes is not None:
            self.meter.observe(metric.EXTRACT_HELD_BYTES, lag.held_bytes)
        if lag.left_bytes is not None:
            self.meter.observe(metric.EXTRACT_LEFT_BYTES, lag.left_bytes)
