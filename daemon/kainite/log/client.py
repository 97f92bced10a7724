"""The serialization log as the daemon's other parts see it.

:class:`~kainite.owner.owner.LogOwner` implements the interface in the same process; a connection to an owner
elsewhere may implement it too.

The log has one *beginning* for each stream: the time from which on all shards of the stream are read whose leases
stand at LATEST or AT_TIMESTAMP and of which the log has no record. :meth:`LogClient.begin` makes it durable before the
first of them is read (:mod:`kainite.worker.beginning`). Units that were under way then may be torn.
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
        shards: all shards that some reader must read: the shards whose leases are not at SHARD_END.
        read: for each shard that the reporter reads, an age in seconds: every record that arrived in the shard longer
            ago is in the log. A shard with an unknown age is left out. The receiver of a report that came over a
            network adds the time that it may have been under way to each age.
        tips: for each such shard, the age of the moment at which the shard was open and all its records were in the
            log.
        arrived: for each such shard, the arrival of its last record in the log, by Kinesis' clock in milliseconds since
            the epoch; all earlier records of the shard are in the log too.
        waiting: those of ``shards`` that are not read before their parents, which are among ``shards`` too.
    """

    shards: frozenset[str]
    read: Mapping[str, float]
    tips: Mapping[str, float] = field(default_factory=dict)
    arrived: Mapping[str, int] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()

    def aged(self, seconds: float) -> ReadingReport:
        """Returns the report with ages that have grown by ``seconds``."""
        read, tips = ({shard: age + seconds for shard, age in ages.items()} for ages in (self.read, self.tips))
        return replace(self, read=read, tips=tips)


class LogClient(Protocol):
    @property
    def hold_ms(self) -> int | None:
        """Returns the arrival beyond which no shard is to be read further now; None while all may be read.

        Milliseconds since the epoch by Kinesis' clock (:mod:`kainite.owner.reading_turn`).
        """

    async def position(self, shard_id: str) -> Position | None:
        """Returns the position of the shard's last durable record in the log; None when the log has none of the shard.

        Waits for the shard's appends under way, also for appends that their callers gave up: the returned position is
        durable, and only a later append can make a record beyond it durable.

        Raises:
            LogFencedError, LogUnavailableError: as :meth:`append`.
        """

    async def begin(self, at_ms: int, stream: str = "") -> int:
        """Makes a time the log's beginning, unless the log has one; returns the log's beginning when it is durable.

        Of several streams, the stream is awaited from then on (:mod:`kainite.log.collecting.reported_shards`).

        Args:
            at_ms: milliseconds since the epoch by Kinesis' clock; 0 where shards are read from TRIM_HORIZON.
            stream: the stream's part of its shards' keys (:mod:`kainite.base.shard_key`).

        Raises:
            LogRequestError: this process does not hold the shard's lease.
            LogFencedError, LogUnavailableError: as :meth:`append`.
        """

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        """Appends the fragments of one ``processRecords`` call; returns when they are durable.

        Args:
            shard_id: the shard that the records came through.
            first: position of the call's first record.
            last: position of the call's last record; the shard's position from now on.
            fragments: the fragments that the child emitted; may be empty.
            after: the shard's position in the log, as the caller knows it; None where the log has none of the shard.
                Sequence numbers have gaps of any size, so only this shows that the append follows what the log has.

        An append whose ``last`` is not beyond the shard's position is a recognised duplicate: it
        changes nothing, and returns when the original is durable.

        Raises:
            LogAppendError: the owner cannot decide on the append; no owner can, and nothing of it is in the log.
            LogRequestError: ``last`` is beyond the shard's position, and ``after`` is not the position or ``first`` is
                not beyond it; the caller asks for the position and cuts its batch there.
            LogFencedError: another owner has the log partition; no further append can succeed.
            LogUnavailableError: the owner has stopped; whether the append is durable is unknown.
        """

    def report(self, report: ReadingReport) -> None:
        """Reports how far shards are read, so that no unit whose parts may still be on the stream times out.

        Reports may be lost; without them no unit times out.
        """
