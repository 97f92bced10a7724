"""KCL's keys for the stream: which one, from where, and how records are fetched."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import choice, flag, millis, seconds, text, whole
from kainite.settings.sections.stream import InitialPosition, Retrieval

_ARN = r"arn:aws[a-z-]*:kinesis:[a-z0-9-]+:\d{12}:stream/[A-Za-z0-9_.-]{1,128}"
_CONSUMER = r"/consumer/[A-Za-z0-9_.-]{1,128}:\d+"

_STREAM = (
    Key(
        "streamName",
        "stream",
        "name",
        text("a stream name", r"[A-Za-z0-9_.-]{1,128}"),
        "The stream to read.",
        default="streamArn's",
        required=True,
    ),
    Key(
        "streamArn",
        "stream",
        "arn",
        text("a stream's ARN, arn:aws:kinesis:REGION:ACCOUNT:stream/NAME", _ARN),
        "The stream to read, in its region and account; wins over `streamName`.",
    ),
    Key(
        "initialPositionInStream",
        "stream",
        "initial_position",
        choice(
            InitialPosition,
            excluded=(InitialPosition.AT_TIMESTAMP,),
            instead="set initialPositionInStreamExtended to the moment in place of it",
        ),
        "Where a shard without a checkpoint is read from.",
    ),
    Key(
        "initialPositionInStreamExtended",
        "stream",
        "initial_timestamp",
        seconds(0, 2_147_483_647),
        "Where a shard without a checkpoint is read from: seconds since 1970; wins over `initialPositionInStream`.",
    ),
    Key(
        "callProcessRecordsEvenForEmptyRecordList",
        "stream",
        "call_with_empty_batches",
        flag(),
        "Whether a child is called for a reply without records.",
    ),
    Key(
        "parentShardPollIntervalMillis",
        "stream",
        "parent_poll",
        millis(50, 3_600_000),
        "How often a shard looks whether its parents are finished.",
    ),
    Key(
        "shardSyncIntervalMillis",
        "stream",
        "shard_sync",
        millis(100, 86_400_000),
        "How often the list of shards is read again.",
    ),
    Key(
        "ignoreUnexpectedChildShards",
        "stream",
        "ignore_unexpected_children",
        flag(),
        "Whether a child of a shard that is still open is ignored; otherwise it is an error.",
    ),
    Key(
        "listShardsBackoffTimeInMillis",
        "stream",
        "list_shards_backoff",
        millis(0, 3_600_000),
        "Wait before the list of shards is read again when Kinesis throttles.",
    ),
    Key(
        "maxListShardsRetryAttempts",
        "stream",
        "list_shards_tries",
        whole(1, 1_000_000),
        "Most tries to read the list of shards.",
    ),
    Key(
        "skipShardSyncAtWorkerInitializationIfLeasesExist",
        "stream",
        "skip_sync_if_leases",
        flag(),
        "Whether an application that has leases starts without a shard sync. As in KCL, `true` also lets"
        " aggregated records of a foreign hash range pass.",
    ),
)

_POLLING = (
    Key(
        "maxRecords",
        "stream",
        "max_records",
        whole(1, 10_000),
        "Most records in one GetRecords reply.",
        aliases=("pollingConfig.maxRecords",),
    ),
    Key(
        "idleTimeBetweenReadsInMillis",
        "stream",
        "idle_between_reads",
        millis(50, 3_600_000),
        "Least time between two reads of a shard; Kinesis allows five a second and shard.",
        aliases=("pollingConfig.idleTimeBetweenReadsInMillis",),
    ),
    Key(
        "millisBehindLatestThresholdForReducedTps",
        "stream",
        "reduced_tps_behind",
        millis(0, 86_400_000),
        "A shard that is less than this behind is read no more often than in this time; 0 for no such limit.",
        aliases=("pollingConfig.millisBehindLatestThresholdForReducedTps",),
    ),
)

_FANOUT = (
    Key(
        "retrievalMode",
        "stream",
        "retrieval",
        choice(Retrieval),
        "How records are fetched. DEFAULT is polling here; in Java it is fan-out unless a polling key is set.",
    ),
    Key(
        "fanoutConfig.consumerArn",
        "stream",
        "consumer_arn",
        text("a stream consumer's ARN, arn:aws:kinesis:…:stream/NAME/consumer/NAME:NUMBER", _ARN + _CONSUMER),
        "The registered consumer to read as, with `retrievalMode=FANOUT`.",
    ),
    Key(
        "fanoutConfig.consumerName",
        "stream",
        "consumer_name",
        text("a consumer name", r"[A-Za-z0-9_.-]{1,128}"),
        "The consumer to find or to register.",
        default="applicationName",
    ),
    Key(
        "fanoutConfig.maxDescribeStreamSummaryRetries",
        "stream",
        "describe_stream_tries",
        whole(1, 1_000),
        "Most tries of DescribeStreamSummary before fan-out gives up.",
    ),
    Key(
        "fanoutConfig.maxDescribeStreamConsumerRetries",
        "stream",
        "describe_consumer_tries",
        whole(1, 1_000),
        "Most tries of DescribeStreamConsumer before fan-out gives up.",
    ),
    Key(
        "fanoutConfig.registerStreamConsumerRetries",
        "stream",
        "register_consumer_tries",
        whole(1, 1_000),
        "Most tries of RegisterStreamConsumer before fan-out gives up.",
    ),
    Key(
        "fanoutConfig.retryBackoffMillis",
        "stream",
        "consumer_backoff",
        millis(0, 3_600_000),
        "Wait between two tries of these calls for fan-out.",
    ),
)

KEYS: tuple[Key, ...] = _STREAM + _POLLING + _FANOUT
POLLING_KEYS = frozenset(key.name for key in _POLLING)
FANOUT_KEYS = frozenset(key.name for key in _FANOUT if key.name != "retrievalMode")
