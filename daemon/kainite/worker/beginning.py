"""Decides where reading begins with units of work: at one time for the whole log, which is durable before any read.

A shard whose lease stands at LATEST, and of which the log has no record, has nothing else that tells where reading it
began. Were it asked for at LATEST again, all that came while no daemon ran would be lost. So LATEST is never asked for
with units of work: such a shard is read AT_TIMESTAMP of the log's beginning, the first time as every later time, by
whichever daemon, whenever it comes to read it. AT_TIMESTAMP begins there too, so that units are torn at one time only.

The log's beginning is the first time that a daemon proposes (:meth:`~kainite.log.client.LogClient.begin`). For LATEST
that is the present by Kinesis' clock, rounded down to a second, less :data:`MARGIN_S`: two hosts of Kinesis may
disagree about the time, and a record that comes after the beginning must not have an earlier arrival. So records of
the second or two before the first start are read too, which LATEST would leave out.

States of the log: *not begun* → *begun*, for good. Only another stream that the log adopts takes it back.

Invariants: a shard is read only when the beginning is durable; each record that arrived after it, in a shard that has
a lease or comes of one that has, is read before the shard is done. A unit with records on both sides of the beginning
is incomplete, or may be: it fails visibly (:mod:`kainite.log.collecting.collect`, and with ``uowEnd=watermark``
:func:`~kainite.log.collecting.watermark.may_be_torn`).

=====================================================  =================================================================
a crash                                                leaves
=====================================================  =================================================================
after the leases are made, before the note is durable  a log that is not begun: nothing was read; the next daemon
                                                       proposes its own time
when the note is durable, before the daemon knows      the beginning; every later proposal is answered with it
when the shard is read, before its first append        the same: the shard is read from the beginning again
after the first append                                 the shard's position in the log, where reading goes on
a daemon was frozen with an old proposal               the beginning, which its proposal does not change
a reshard while no daemon runs                         the parent, read from the beginning; its children have leases at
                                                       TRIM_HORIZON (:mod:`kainite.leases.lineage`)
=====================================================  =================================================================
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, Checkpoint
from kainite.base.logs import event

_logger = logging.getLogger(__name__)

MARGIN_S: Final = 1.0
"""How far the clocks of two of Kinesis' hosts may be apart, seconds; they differ by milliseconds."""


async def proposed_ms(checkpoint: Checkpoint, timestamp: float | None, stream_time: Callable[[], float]) -> int | None:
    """Returns the time to propose as the log's beginning; None where the lease's checkpoint says where to read.

    Args:
        checkpoint: the lease's checkpoint.
        timestamp: the time that AT_TIMESTAMP stands for, epoch seconds.
        stream_time: returns the time by Kinesis' clock, epoch seconds, rounded down; it blocks.

    Raises:
        StreamError: Kinesis does not tell its time.
    """
    if checkpoint == LATEST:
        return math.floor((await asyncio.to_thread(stream_time) - MARGIN_S) * 1000)
    if checkpoint == AT_TIMESTAMP and timestamp is not None:
        return math.floor(timestamp * 1000)
    return None


def warn_if_kept(checkpoint: Checkpoint, proposed: int, begun: int, shard: str) -> None:
    """Warns where the settings name another time than the log has begun at."""
    if checkpoint == AT_TIMESTAMP and proposed != begun:
        event(
            _logger, logging.WARNING,
            "the log has begun already: initialPositionInStreamExtended changes nothing for shards without records; "
            "kainite leases reset --at reads from another time",
            shard=shard, begun=str(datetime.fromtimestamp(begun / 1000, UTC)),
        )  # fmt: skip
