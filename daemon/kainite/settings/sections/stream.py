"""The section for the stream: where reading starts, and how records are fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kainite.settings.key import Reload, kcl, kcl_key, own
from kainite.settings.kinds.values import choice, flag, millis, seconds, stream_names, stream_output, text, whole

_ARN = r"arn:aws[a-z-]*:kinesis:[a-z0-9-]+:\d{12}:stream/[A-Za-z0-9_.-]{1,128}"
_CONSUMER = r"/consumer/[A-Za-z0-9_.-]{1,128}:\d+"


class InitialPosition(StrEnum):
    """The position at which a shard without a checkpoint is read."""

    LATEST = "LATEST"
    TRIM_HORIZON = "TRIM_HORIZON"
    AT_TIMESTAMP = "AT_TIMESTAMP"


class Retrieval(StrEnum):
    """The way in which records are fetched. DEFAULT is fan-out where HTTP/2 can be spoken, and else polling."""

    DEFAULT = "DEFAULT"
    POLLING = "POLLING"
    FANOUT = "FANOUT"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of reading the stream."""

    name: str = field(
        metadata=kcl_key(
            "streamName",
            text("a stream name", r"[A-Za-z0-9_.-]{1,128}"),
            Reload.RESTART,
            "The stream to read.",
            otherwise="streamArn's",
            required=True,
        )
    )
    arn: str | None = kcl(
        "streamArn",
        text("a stream's ARN, arn:aws:kinesis:REGION:ACCOUNT:stream/NAME", _ARN),
        Reload.RESTART,
        "The stream to read, in its region and account; wins over `streamName`.",
        default=None,
    )
    names: tuple[str, ...] = own(
        "streamNames",
        stream_names(_ARN),
        Reload.NOW,
        "The streams to read, in place of `streamName`, as KCL's multi-stream mode does: names, or ARNs of any account"
        " and of one region. `stream.NAME.KEY` sets a key for one of them.",
        default=(),
        otherwise="none",
    )
    created: int | None = None  # in seconds since 1970, where `stream.NAME.creationEpoch` gives it
    initial_position: InitialPosition = kcl(
        "initialPositionInStream",
        choice(
            InitialPosition,
            excluded=(InitialPosition.AT_TIMESTAMP,),
            instead="set initialPositionInStreamExtended to the moment in place of it",
        ),
        Reload.RESTART,
        "Where a shard without a checkpoint is read from.",
        default=InitialPosition.LATEST,
    )
    initial_timestamp: float | None = kcl(
        "initialPositionInStreamExtended",
        seconds(0, 2_147_483_647),
        Reload.RESTART,
        "Where a shard without a checkpoint is read from: seconds since 1970; wins over `initialPositionInStream`.",
        default=None,
    )
    max_records: int = kcl(
        "maxRecords",
        whole(1, 10_000),
        Reload.NEXT_CHILD,
        "Most records in one GetRecords reply.",
        default=10_000,
        aliases=("pollingConfig.maxRecords",),
    )
    idle_between_reads: float = kcl(
        "idleTimeBetweenReadsInMillis",
        millis(50, 3_600_000),
        Reload.NEXT_CHILD,
        "Least time between two reads of a shard; Kinesis allows five a second and shard.",
        default=1.5,
        aliases=("pollingConfig.idleTimeBetweenReadsInMillis",),
    )
    call_with_empty_batches: bool = kcl(
        "callProcessRecordsEvenForEmptyRecordList",
        flag(),
        Reload.NEXT_CHILD,
        "Whether a child is called for a reply without records.",
        default=False,
    )
    parent_poll: float = kcl(
        "parentShardPollIntervalMillis",
        millis(50, 3_600_000),
        Reload.NEXT_CHILD,
        "How often a shard looks whether its parents are finished.",
        default=10.0,
    )
    shard_sync: float = kcl(
        "shardSyncIntervalMillis",
        millis(100, 86_400_000),
        Reload.NOW,
        "How often the list of shards is read again.",
        default=60.0,
    )
    # The replies that are read ahead of the child, for each shard. It is KCL's own value: one reply waits while the
    # child works on another. More would take memory and help nobody: a child that keeps up empties the queue, and one
    # that does not is the bottleneck.
    prefetch_batches: int = 1
    prefetch_bytes: int = own(
        "prefetchBytes",
        whole(1, unit="bytes"),
        Reload.NEXT_CHILD,
        "Most bytes of records that are read ahead, for each shard.",
        default=8 * 1024 * 1024,
    )
    # The most records that are read ahead, for each shard. It is KCL's own value. A record takes memory beside its
    # bytes, so this bounds what many small records take.
    prefetch_records: int = 30_000
    reduced_tps_behind: float = kcl(
        "millisBehindLatestThresholdForReducedTps",
        millis(0, 86_400_000),
        Reload.NEXT_CHILD,
        "A shard that is less than this behind is read no more often than in this time; 0 for no such limit.",
        default=0.0,
        aliases=("pollingConfig.millisBehindLatestThresholdForReducedTps",),
    )
    ignore_unexpected_children: bool = kcl(
        "ignoreUnexpectedChildShards",
        flag(),
        Reload.NOW,
        "Whether a child of a shard that is still open is ignored; otherwise it is an error.",
        default=False,
    )
    list_shards_backoff: float = kcl(
        "listShardsBackoffTimeInMillis",
        millis(0, 3_600_000),
        Reload.NOW,
        "Wait before the list of shards is read again when Kinesis throttles.",
        default=1.5,
    )
    list_shards_tries: int = kcl(
        "maxListShardsRetryAttempts",
        whole(1, 1_000_000),
        Reload.NOW,
        "Most tries to read the list of shards.",
        default=50,
    )
    skip_sync_if_leases: bool = kcl(
        "skipShardSyncAtWorkerInitializationIfLeasesExist",
        flag(),
        Reload.RESTART,
        "Whether an application that has leases starts without a shard sync. As in KCL, `true` also lets"
        " aggregated records of a foreign hash range pass.",
        default=False,
    )
    retrieval: Retrieval = kcl(
        "retrievalMode",
        choice(Retrieval),
        Reload.RESTART,
        "How records are fetched. DEFAULT is POLLING where a polling key is set, as in Java; else fan-out with"
        " `kainite[fanout]`, and polling without it. FANOUT without it speaks HTTP/1.1.",
        default=Retrieval.DEFAULT,
    )
    consumer_arn: str | None = kcl(
        "fanoutConfig.consumerArn",
        text("a stream consumer's ARN, arn:aws:kinesis:…:stream/NAME/consumer/NAME:NUMBER", _ARN + _CONSUMER),
        Reload.RESTART,
        "The registered consumer to read as, with `retrievalMode=FANOUT`.",
        default=None,
    )
    consumer_name: str | None = kcl(
        "fanoutConfig.consumerName",
        text("a consumer name", r"[A-Za-z0-9_.-]{1,128}"),
        Reload.RESTART,
        "The consumer to find or to register.",
        default=None,
        otherwise="applicationName",
    )
    describe_stream_tries: int = kcl(
        "fanoutConfig.maxDescribeStreamSummaryRetries",
        whole(1, 1_000),
        Reload.RESTART,
        "Most tries of DescribeStreamSummary before fan-out gives up.",
        default=10,
    )
    describe_consumer_tries: int = kcl(
        "fanoutConfig.maxDescribeStreamConsumerRetries",
        whole(1, 1_000),
        Reload.RESTART,
        "Most tries of DescribeStreamConsumer before fan-out gives up.",
        default=10,
    )
    register_consumer_tries: int = kcl(
        "fanoutConfig.registerStreamConsumerRetries",
        whole(1, 1_000),
        Reload.RESTART,
        "Most tries of RegisterStreamConsumer before fan-out gives up.",
        default=10,
    )
    consumer_backoff: float = kcl(
        "fanoutConfig.retryBackoffMillis",
        millis(0, 3_600_000),
        Reload.RESTART,
        "Wait between two tries of these calls for fan-out.",
        default=1.0,
    )
    output: str | None = own(
        "output",
        stream_output(),
        Reload.RESTART,
        "The stream that the children's messages are put on, for the next stage; with `childProtocol=markers`, and"
        " `unitsOfWork` off.",
        default=None,
        otherwise="none",
    )
