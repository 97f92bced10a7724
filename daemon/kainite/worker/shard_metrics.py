"""The metrics of one shard's calls, for the meter, the health endpoint and the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kainite.base.logs import event
from kainite.child.events import Action
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.observe.metric import Metric

logger = logging.getLogger(__name__)

TIMES: Final[dict[Action, Metric]] = {
    Action.INITIALIZE: metric.INITIALIZE_TIME,
    Action.PROCESS_RECORDS: metric.PROCESS_RECORDS_TIME,
    Action.LEASE_LOST: metric.SHUTDOWN_TIME,
    Action.SHARD_ENDED: metric.SHUTDOWN_TIME,
}


class ShardMetrics:
    """Measures the time of calls, and counts records and failures.

    Attributes:
        records: how many records were processed.
    """

    def __init__(self, shard_id: str, meter: Meter) -> None:
        self.records = 0
        self._records_at: float | None = None
        self._shard = shard_id
        self._meter = meter
        self._loop = asyncio.get_running_loop()

    @contextmanager
    def timing(self, action: Action, warn_after: float | None) -> Iterator[None]:
        """Measures the time of a call of the child, however the call ends.

        Args:
            action: the action that the child is asked for.
            warn_after: seconds after which one warning is logged while the call still runs; None for never.
        """
        began = self._loop.time()
        warning = None if warn_after is None else self._loop.call_later(warn_after, self._warn, action, warn_after)
        try:
            yield
        finally:
            if warning is not None:
                warning.cancel()
            if action in TIMES:
                self._meter.observe(TIMES[action], (self._loop.time() - began) * 1000, self._shard)

    def processed(self, batch: RecordBatch) -> None:
        """Counts a batch that the child has processed."""
        if batch.count:
            self._records_at = self._loop.time()
        self.records += batch.count
        self._meter.observe(metric.RECORDS_PROCESSED, batch.count, self._shard)
        self._meter.observe(metric.DATA_BYTES_PROCESSED, batch.payload_bytes, self._shard)

    def child_failed(self) -> None:
        self._meter.observe(metric.CHILD_FAILURES, shard=self._shard)

    def rejected(self) -> None:
        """Counts a message that was bad, or whose records were left out."""
        self._meter.observe(metric.REJECTED_MESSAGES, shard=self._shard)

    @property
    def since_records(self) -> float | None:
        """Returns the seconds since a batch with records was processed; None before the first."""
        return None if self._records_at is None else self._loop.time() - self._records_at

    def _warn(self, action: Action, seconds: float) -> None:
        event(logger, logging.WARNING, "call takes long", shard=self._shard, action=action, seconds=seconds)
