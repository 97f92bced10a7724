"""Measures at Kinesis how far checkpoints are behind the newest records.

For each unfinished shard, one GetRecords call of one record is made at its checkpoint. The reply says how many
milliseconds that position is behind. The call counts among the five calls a second that all readers of a shard may
make, so it is made only on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kainite.base.checkpoint import LATEST, SHARD_END
from kainite.base.errors import KainiteError
from kainite.kinesis.named_streams import ReadableShards
from kainite.kinesis.start_position import start_at
from kainite.leases.administration.report import Lag
from kainite.leases.administration.shard_reading import pages
from kainite.leases.table.lease import Lease

AT_ONCE = 8
"""The number of shards that are measured at the same time."""


def measure_lags(stream: ReadableShards, leases: Sequence[Lease], initial_timestamp: float | None) -> dict[str, Lag]:
    """Measures the lags of unfinished shards; returns them by shard, with the cause where a shard could not be
    measured.

    Args:
        stream: the stream of the shards.
        leases: the leases with the checkpoints.
        initial_timestamp: the meaning of a checkpoint AT_TIMESTAMP, epoch seconds.
    """
    wanted = [lease for lease in leases if lease.checkpoint != SHARD_END]
    with ThreadPoolExecutor(AT_ONCE, "kainite-lag") as pool:
        lags = pool.map(lambda lease: _lag(stream, lease, initial_timestamp), wanted)
        return {lease.key: lag for lease, lag in zip(wanted, lags, strict=True)}


def _lag(stream: ReadableShards, lease: Lease, initial_timestamp: float | None) -> Lag:
    if lease.checkpoint == LATEST:
        return Lag(None, "nothing read yet: it begins at LATEST")
    try:
        start = start_at(lease.checkpoint, None, None, None, initial_timestamp)
        reply = next(pages(stream, lease.key, start, limit=1, most=1))
    except KainiteError as error:
        return Lag(None, str(error))
    return Lag(reply.millis_behind_latest)
