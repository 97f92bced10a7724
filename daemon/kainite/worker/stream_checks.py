"""The checks on a daemon's streams for ``/health``, with causes. Pure.

A stream has one that is not read, whose new shards are not found, or that others read although the settings do not name
it.

Only what fails has a check here. ``kainite status`` gives one for each stream (:mod:`kainite.verdict.streams`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from kainite.leases.foreign_streams import ForeignStream
from kainite.leases.shard_sync.schedule import UnsyncedStream
from kainite.observe.check import STREAM, Check, Level

NOT_OPEN_REMEDY: Final = (
    "look at its name, region and account, and at the role's rights (kainite doctor -p FILE asks), or take it out of"
    " streamNames and send SIGHUP; it is tried again each 10 s"
)
UNSYNCED_REMEDY: Final = (
    "does the stream exist, and may the role list its shards? kainite doctor -p FILE asks; a stream that is gone is"
    " taken out of streamNames"
)
FOREIGN_REMEDY: Final = (
    "give all workers, Java's too, the same streamNames, and send SIGHUP to the daemons (kainite leases -p FILE shows"
    " who reads what)"
)


def stream_checks(
    refused: Mapping[str, str],
    unsynced: Mapping[str, UnsyncedStream],
    foreign: Mapping[str, ForeignStream],
    spelling: Callable[[str], str],
    now: float,
    limit: float,
    *,
    collected: Collection[str],
) -> Iterator[Check]:
    """Yields a check for each stream that is in trouble.

    Args:
        refused: why streams are not open, by the name or ARN in the settings.
        unsynced: the streams whose shards cannot be synced, by their ids.
        foreign: the streams that others read and the settings do not name, by their ids.
        spelling: returns the name or ARN in the settings of an id.
        now: the time by the clock of ``unsynced`` and ``foreign``.
        limit: seconds after which is told what may pass by itself.
        collected: the streams that units of work wait for, by the name or ARN in the settings.
    """
    for name, cause in refused.items():
        waiting = "; units of work wait, since parts of them may stand there" if name in collected else ""
        yield Check(f"{STREAM}{name}", Level.BROKEN, f"it is not read: {cause}{waiting}", NOT_OPEN_REMEDY)
    for id, failure in unsynced.items():
        seconds = now - failure.since
        if not failure.passes or seconds >= limit:
            cause = f"its new shards are not found for {seconds:.0f} s: {failure.cause}"
            yield Check(f"{STREAM}{spelling(id)}", Level.DEGRADED, cause, UNSYNCED_REMEDY)
    for id, other in foreign.items():
        if now - other.since >= limit:
            cause = f"worker {other.worker} reads it, and the streamNames of this daemon do not have it"
            yield Check(f"{STREAM}{id}", Level.DEGRADED, cause, FOREIGN_REMEDY)
