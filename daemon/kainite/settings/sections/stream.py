"""The section for the stream: where reading starts, and how records are fetched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class InitialPosition(StrEnum):
    """The position at which a shard without a checkpoint is read."""

    LATEST = "LATEST"
    TRIM_HORIZON = "TRIM_HORIZON"
    AT_TIMESTAMP = "AT_TIMESTAMP"


class Retrieval(StrEnum):
    """The way in which records are fetched. DEFAULT is polling here, and fan-out in Java (``--check`` says so)."""

    DEFAULT = "DEFAULT"
    POLLING = "POLLING"
    FANOUT = "FANOUT"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of reading the stream.

    Attributes:
        name: the stream's name.
        arn: the stream's ARN.
        initial_position: where a shard without a checkpoint is read from.
        initial_timestamp: the moment for AT_TIMESTAMP, seconds since 1970.
        max_records: most records in one GetRecords reply.
        idle_between_reads: least time between two reads of a shard, seconds.
        call_with_empty_batches: whether a child is called for a reply without records.
        parent_poll: how often a shard's parents are looked at, seconds.
        shard_sync: how often the list of shards is read, seconds.
        prefetch_batches: most replies that are read ahead, for each shard.
        prefetch_bytes: most bytes of records that are read ahead, for each shard.
        prefetch_records: most records that are read ahead, for each shard.
        reduced_tps_behind: a shard that is less behind is read no more often than in this time, seconds; 0: no limit.
        ignore_unexpected_children: whether a child of an open shard is ignored; otherwise it is an error.
        list_shards_backoff: wait before the next try to list the shards, seconds.
        list_shards_tries: most tries to list the shards, one right after the other.
        skip_sync_if_leases: whether the first shard sync is left out when there are leases.
        retrieval: how records are fetched.
        consumer_arn: the registered consumer to read as, with fan-out.
        consumer_name: the consumer to find or to register, with fan-out; None: the application's name.
        describe_stream_tries, describe_consumer_tries, register_consumer_tries: most tries of each call for fan-out.
        consumer_backoff: wait between two of these tries, seconds.
        output: the stream that the children's messages are put on; None: none.
    """

    name: str
    arn: str | None = None
    initial_position: InitialPosition = InitialPosition.LATEST
    initial_timestamp: float | None = None
    max_records: int = 10_000
    idle_between_reads: float = 1.5
    call_with_empty_batches: bool = False
    parent_poll: float = 10.0
    shard_sync: float = 60.0
    prefetch_batches: int = 1
    prefetch_bytes: int = 8 * 1024 * 1024
    prefetch_records: int = 30_000
    reduced_tps_behind: float = 0.0
    ignore_unexpected_children: bool = False
    list_shards_backoff: float = 1.5
    list_shards_tries: int = 50
    skip_sync_if_leases: bool = False
    retrieval: Retrieval = Retrieval.DEFAULT
    consumer_arn: str | None = None
    consumer_name: str | None = None
    describe_stream_tries: int = 10
    describe_consumer_tries: int = 10
    register_consumer_tries: int = 10
    consumer_backoff: float = 1.0
    output: str | None = None
