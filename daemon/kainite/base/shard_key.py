"""The key of a shard: how leases, the log, metrics and health name it, in an application of one stream or of several.

===================  ===============================================  =============================================
the application      a shard's key                                    the stream's part of it
===================  ===============================================  =============================================
reads ``streamName``  the shard's id: ``shardId-000000000000``        empty
reads several         as KCL's multi-stream mode writes lease keys:   ``account:name:creationEpoch``, KCL's
                      ``account:name:creationEpoch:shardId``          ``streamIdentifier``
===================  ===============================================  =============================================

Streams number their shards alike, so a shard's id alone names a shard of each. Neither the name of a stream nor the id
of a shard has a colon. The time of creation tells a stream from one that replaced it under its name.

Few places take a key apart: the calls to Kinesis (:mod:`kainite.kinesis.client`), the items of the lease table
(:mod:`kainite.leases.table.lease`), what a child is told (:mod:`kainite.child`), and who must know a shard's stream
(:mod:`kainite.worker.daemon_streams`, :mod:`kainite.log.collecting.reported_shards`). Others compare keys as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_STREAM: Final = re.compile(r"(\d+):([A-Za-z0-9_.-]{1,128}):([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class ShardKey:
    """A shard's key, taken apart; ``str`` puts it together.

    Attributes:
        stream: the stream's part; empty in an application that reads ``streamName``.
        shard_id: the shard's id, as Kinesis has it.
    """

    stream: str
    shard_id: str

    @classmethod
    def of(cls, key: str) -> ShardKey:
        """Takes a key apart; any text is a key."""
        stream, _, shard_id = key.rpartition(":")
        return cls(stream, shard_id)

    def __str__(self) -> str:
        return f"{self.stream}:{self.shard_id}" if self.stream else self.shard_id


@dataclass(frozen=True, slots=True)
class StreamId:
    """A stream among several, as KCL's ``StreamIdentifier`` serializes it; ``str`` does so.

    Attributes:
        account: the id of the AWS account that has the stream.
        name: the stream's name.
        created: seconds since 1970 at which the stream was created; KCL leaves the unit to the application.
    """

    account: str
    name: str
    created: int

    @classmethod
    def parsed(cls, text: str) -> StreamId | None:
        """Reads the serialized form; returns None where ``text`` is none."""
        found = _STREAM.fullmatch(text)
        return cls(found[1], found[2], int(found[3])) if found else None

    @classmethod
    def of(cls, arn: str, created: int) -> StreamId:
        """Makes the id of the stream with an ARN, ``arn:aws:kinesis:REGION:ACCOUNT:stream/NAME``."""
        return cls(arn.split(":")[4], arn.rpartition("/")[2], created)

    def __str__(self) -> str:
        return f"{self.account}:{self.name}:{self.created}"
