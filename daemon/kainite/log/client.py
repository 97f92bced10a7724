"""The serialization log as the daemon's other parts see it.

:class:`~kainite.owner.owner.LogOwner` implements the interface in the same process; a connection to an owner
elsewhere may implement it too.

With ``uowEnd=watermark`` the log must know since when a shard is read that is not read from its beginning: units that
were under way then may be torn. It is told in two ways, and both are needed:

* :meth:`LogClient.begin` makes the time durable before the log has a position of the shard, and before the lease table
  has a checkpoint of it: after each of these a reader that starts again no longer knows that it began there.
* :attr:`ReadingReport.started` tells the time while the shard has brought no record, and so no call of ``begin``. The
  report that takes the watermark past a torn unit also says that the unit may be torn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kainite.base.position import Position

if TYPE_CHECKING:
    from kainite.uow.fragment import Fragment


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """The progress of a reader of shards. Ages are relative, so no two hosts' clocks are compared.

    Attributes:
        shards: all shards that are to be read, by anybody: those whose leases are not at SHARD_END, in whatever state.
        read: for shards that the reporter reads, an age in seconds: every record that arrived in the shard longer ago
            is in the log. A shard of which nothing is known is left out. Over a network, the time that the report may
            have been under way must be added to each age.
        tips: likewise, since the shard was open, and everything that it held is in the log.
        arrived: the arrival, by Kinesis' clock in milliseconds since the epoch, of the last record of a shard that is
            in the log, with all before it.
        started: for shards that are not read from their beginning, and of which the log has nothing yet, the time
            from which on they are read, likewise.
    """

    shards: frozenset[str]
    read: Mapping[str, float]
    tips: Mapping[str, float] = field(default_factory=dict)
    arrived: Mapping[str, int] = field(default_factory=dict)
    started: Mapping[str, int] = field(default_factory=dict)

    def aged(self, seconds: float) -> ReadingReport:
        """Returns the report as it is so much later."""
        read, tips = ({shard: age + seconds for shard, age in ages.items()} for ages in (self.read, self.tips))
        return replace(self, read=read, tips=tips)


class LogClient(Protocol):
    async def position(self, shard_id: str) -> Position | None:
        """Returns the position of the shard's last durable record in the log; None when the log has none of the shard.

        Waits for the shard's appends that are under way, also those that their callers gave up: what is returned is
        durable, and nothing beyond it can become durable but by a later append.

        Raises:
            LogFencedError, LogUnavailableError: as :meth:`append`.
        """

    async def begin(self, shard_id: str, started_ms: int) -> None:
        """Tells since when a shard is read that is not read from its beginning; returns when that is durable.

        Args:
            shard_id: a shard of which the log has no position.
            started_ms: milliseconds since the epoch by Kinesis' clock.

        Raises:
            LogFencedError, LogUnavailableError: as :meth:`append`.
        """

    async def append(self, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]) -> None:
        """Appends the fragments of one ``processRecords`` call; returns when they are durable.

        Args:
            shard_id: the shard that the records came through.
            first: position of the call's first record.
            last: position of the call's last record; the shard's position from now on.
            fragments: what the child emitted; may be empty.

        An append whose ``last`` is not beyond the shard's position is a recognised duplicate: it
        changes nothing, and returns when the original is durable.

        Raises:
            LogRequestError: ``first`` is not beyond the shard's position but ``last`` is; the
                caller cuts its batch there.
            LogFencedError: another owner has the log partition; nothing more can be appended.
            LogUnavailableError: the owner has stopped; whether the append is durable is unknown.
        """

    def report(self, report: ReadingReport) -> None:
        """Tells how far shards are read: units whose parts may still be on the stream do not time out.

        Reports may be lost; without them no unit times out.
        """
