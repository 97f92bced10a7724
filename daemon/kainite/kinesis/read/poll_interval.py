"""Computes how long a reader waits from one GetRecords call to the next. Pure."""

from __future__ import annotations

from kainite.settings import StreamSettings

CATCH_UP_INTERVAL_S = 0.25
"""Seconds between two reads while behind: Kinesis allows five a second and shard, for all its readers together."""

BYTES_PER_SECOND = 2_000_000
"""Bytes a second that Kinesis lets all readers of a shard read together."""

THROTTLED_FOR_S = 60.0
"""Seconds for which a reader that was throttled leaves room to others."""


def interval(settings: StreamSettings, behind_ms: int | None, reply_bytes: int, *, throttled: bool) -> float:
    """Returns the seconds from the start of one call to the start of the next.

    At the shard's end the interval is KCL's: the idle time, or the threshold for reduced TPS if the threshold is longer
    and the shard is less than that behind. Behind the end KCL waits for the idle time too, and so needs a minute for 40
    full replies; this reader goes on as fast as Kinesis allows to one reader. A reader that was throttled keeps to the
    idle time, and to the rate in bytes, since others may read the same shard.

    Args:
        settings: the stream's settings, with the idle time and the threshold.
        behind_ms: how far behind the last reply was, in milliseconds; None before the first reply.
        reply_bytes: the size of the last reply.
        throttled: whether Kinesis refused a call within :data:`THROTTLED_FOR_S`.
    """
    idle, near = settings.idle_between_reads, settings.reduced_tps_behind
    if behind_ms is not None and behind_ms < near * 1000:
        return max(idle, near)
    if not behind_ms:
        return idle
    return max(idle, reply_bytes / BYTES_PER_SECOND) if throttled else min(idle, CATCH_UP_INTERVAL_S)
