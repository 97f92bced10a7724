"""The streams whose shards an application's leases are for: one (``streamName``), or several (``streamNames``).

A lease belongs to the stream in its key (:mod:`kainite.base.shard_key`). A worker takes, reads and syncs leases of the
streams in its own settings alone. What the leases of other streams tell, it still respects: a fleet's hosts read a
changed file one after the other, so that for a while some of them do not know a stream that others read.

=====================================  ===============================================================================
what a worker sees in the table        what it does
=====================================  ===============================================================================
leases of a stream in its settings     takes its part of them, syncs them if it leads
leases of another stream               takes none; those it holds it gives back after their children have ended.
                                       They count among the leases that are to be read (:func:`all_covered`): a unit
                                       does not end while a part of it may stand there, whoever knows the stream
leases of a plain stream               takes its part; they do not count among those that are to be read: no unit of
                                       work comes through them (``stream.NAME.unitsOfWork = false``)
a stream in its settings, no leases    nothing is known of what is to be read, until somebody has created them
leases without a stream, and it reads  refuses the table: shard 0 of one stream would be taken for that of another
several streams; or the reverse
=====================================  ===============================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import first_hole
from kainite.leases.table.lease import Lease
from kainite.settings import StreamSettings

Begin: TypeAlias = Callable[[Checkpoint, float | None], Awaitable[float]]
"""Returns the log's beginning when it is durable, epoch seconds; with TRIM_HORIZON 0, when the stream is awaited.

It is given the initial position, and the time that AT_TIMESTAMP stands for. It raises
LogUnavailableError when the log does not answer in time, and StreamError.
"""


@dataclass(frozen=True, slots=True)
class ReadStream:
    """A stream that is read.

    Attributes:
        client: the stream.
        settings: its own settings.
        begin: with units of work, notes the log's beginning of the stream; None without them.
        collected: whether units of work wait until the stream is read: false for a plain one beside others.
    """

    client: StreamClient
    settings: StreamSettings
    begin: Begin | None = None
    collected: bool = True


StreamsById: TypeAlias = Mapping[str, ReadStream]
"""The streams that are read, by the stream's part of their shards' keys: one under the empty text, or several."""


def only(client: StreamClient, settings: StreamSettings) -> StreamsById:
    """Returns one stream alone."""
    return {client.id: ReadStream(client, settings)}


def of_streams(leases: Iterable[Lease], streams: Collection[str]) -> tuple[Lease, ...]:
    """Returns the leases of some streams."""
    return tuple(lease for lease in leases if lease.stream in streams)


def to_be_collected(leases: Iterable[Lease], streams: StreamsById) -> tuple[tuple[Lease, ...], frozenset[str]]:
    """Returns the leases and the streams without those that are known to carry no units of work.

    Args:
        leases: the whole table.
        streams: the streams of the settings; another stream may carry units, and stays.
    """
    plain = {stream for stream, read in streams.items() if not read.collected}
    return tuple(lease for lease in leases if lease.stream not in plain), frozenset(streams.keys() - plain)


def all_covered(leases: Iterable[Lease], streams: Collection[str]) -> bool:
    """Tells whether the leases that are not at SHARD_END leave out no hash key of any stream.

    Args:
        leases: the whole table.
        streams: the streams of the settings; a stream that is not among them counts while it has such leases.
    """
    active: dict[str, list[Lease]] = defaultdict(list)
    for lease in leases:
        if lease.checkpoint != SHARD_END:
            active[lease.stream].append(lease)
    return all(
        first_hole(lease.hash_range for lease in active.get(stream, ()) if lease.hash_range) is None
        for stream in active.keys() | set(streams)
    )


def refuse_other_mode(table: str, leases: Iterable[Lease], streams: Collection[str]) -> None:
    """Raises an error where the table was filled in the other mode: for one stream, or for several.

    Raises:
        LeaseTableError: some lease has a stream in its key and this worker reads one stream, or the reverse.
    """
    several = any(streams)
    odd = next((lease.key for lease in leases if bool(lease.stream) != several), None) if streams else None
    if odd is not None:
        had, wants = ("streamName", "streamNames") if several else ("streamNames", "streamName")
        raise LeaseTableError(
            f"lease table {table!r} has the lease {odd!r}, which an application with {had} made, and this one has "
            f"{wants}: give it another applicationName, or go back to {had}"
        )
