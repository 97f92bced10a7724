"""Decides where reading begins with units of work: at one time for the whole log, which is durable before any read.

Of several streams each has a beginning of its own, since one may be added later; what follows holds for each.

A shard whose lease stands at LATEST, and of which the log has no record, has nothing else that tells where reading it
began. Were it asked for at LATEST again, all that came while no daemon ran would be lost. So LATEST is never asked for
with units of work: such a shard is read AT_TIMESTAMP of the log's beginning, the first time as every later time, by
whichever daemon, whenever it comes to read it. AT_TIMESTAMP begins there too, so that units are torn at one time only.

The log's beginning is the first time that a daemon proposes (:meth:`~kainite.log.client.LogClient.begin`). For LATEST
that is the present by Kinesis' clock, rounded down to a second, less :data:`MARGIN_S`: two hosts of Kinesis may
disagree about the time, and a record that comes after the beginning must not have an earlier arrival. So records of
the second or two before the first start are read too, which LATEST would leave out.

A daemon proposes before it creates first leases (:mod:`kainite.leases.shard_sync.create_leases`), and once more before
it reads a shard at LATEST or AT_TIMESTAMP: leases may be older than units of work.

States of the log: *not begun* → *begun*, for good. Only another stream that the log adopts takes it back.

Invariants: first leases are created from a listing that is made when the beginning is durable, and each shard that
was open at the beginning, or later, has a lease or comes of one that has; a shard is read only when the beginning is
durable. So each record that arrived after it is read. A unit with records on both sides of the beginning is
incomplete, or may be: it fails visibly (:mod:`kainite.log.collecting.collect`, and with ``uowEnd=watermark``
:func:`~kainite.log.collecting.watermark.may_be_torn`).

=====================================================  =================================================================
a crash                                                leaves
=====================================================  =================================================================
before the note is durable                             a log that is not begun, and no lease: nothing was read; the next
                                                       daemon proposes its own time
when the note is durable, before the daemon knows      the beginning; every later proposal is answered with it
when some of the first leases are made                 leases of some shards, which are read. Another sync makes the
                                                       others: where a shard was split or merged meanwhile its own, not
                                                       its children's, since it was closed after the beginning
when the shard is read, before its first append        the same: the shard is read from the beginning again
after the first append                                 the shard's position in the log, where reading goes on
a daemon was frozen with an old proposal               the beginning, which its proposal does not change
a daemon was frozen with an old listing                first leases of shards that were open at the beginning or later,
                                                       as of any listing. One that was read and deleted comes again, and
                                                       its records are recognised
a reshard while no daemon runs                         the parent, read from the beginning; its children have leases at
                                                       TRIM_HORIZON (:mod:`kainite.leases.lineage`)
all leases are deleted by hand                         shards as at first, from the beginning: records are recognised by
                                                       the shards' positions in the log
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
from kainite.base.errors import LogUnavailableError
from kainite.base.logs import event
from kainite.base.time_limit import time_limit
from kainite.log.client import LogClient

_logger = logging.getLogger(__name__)

MARGIN_S: Final = 1.0
"""How far the clocks of two of Kinesis' hosts may be apart, seconds; they differ by milliseconds."""

NOTE_S: Final = 10.0
"""Seconds within which the log must note its beginning, before a round of the lease keeper goes on without it."""


async def noted(
    log: LogClient,
    stream_time: Callable[[], float],
    checkpoint: Checkpoint,
    timestamp: float | None,
    stream: str = "",
) -> float:
    """Returns the log's beginning when it is durable, epoch seconds; for leases that are to be created.

    Args:
        log: the log, which may have no owner for a while.
        checkpoint: the leases' first checkpoint; with TRIM_HORIZON the log has no beginning but that of the shards, 0.
        timestamp, stream_time: as :func:`proposed_ms` takes them.
        stream: as :meth:`~kainite.log.client.LogClient.begin` takes it.

    Raises:
        LogUnavailableError: the log did not note it within :data:`NOTE_S`.
        StreamError: Kinesis does not tell its time.
    """
    at_ms = await proposed_ms(checkpoint, timestamp, stream_time)
    try:
        async with time_limit(NOTE_S):
            return await log.begin(at_ms or 0, stream) / 1000
    except TimeoutError:
        raise LogUnavailableError(f"the log did not note within {NOTE_S:g} s when reading begins") from None


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
