"""KCL's keys that have an effect here, with KCL's meaning: the stream, the leases and the child processes."""

from __future__ import annotations

from kainite.settings.key import Key
from kainite.settings.kinds import TABLE_NAME, choice, command, flag, http_url, millis, seconds, text, whole
from kainite.settings.sections import InitialPosition

_STREAM_ARN = text("a stream's ARN", r"arn:aws[a-z-]*:kinesis:[a-z0-9-]+:\d{12}:stream/[A-Za-z0-9_.-]{1,128}")

_AWS = (
    Key("regionName", "aws", "region", text("a region"), "The AWS region.", default="streamArn's, else boto3's"),
    Key("kinesisEndpoint", "aws", "kinesis_endpoint", http_url(), "Kinesis, where it is not AWS's."),
    Key("dynamoDBEndpoint", "aws", "dynamodb_endpoint", http_url(), "DynamoDB, where it is not AWS's."),
)

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
    Key("streamArn", "stream", "arn", _STREAM_ARN, "The stream to read; wins over `streamName`."),
    Key(
        "initialPositionInStream",
        "stream",
        "initial_position",
        choice(InitialPosition, excluded=(InitialPosition.AT_TIMESTAMP,)),
        "Where a shard without a checkpoint is read from.",
    ),
    Key(
        "initialPositionInStreamExtended",
        "stream",
        "initial_timestamp",
        seconds(0),
        "Read a shard without a checkpoint from this moment, in seconds since 1970; wins over the one above.",
    ),
    Key("maxRecords", "stream", "max_records", whole(1, 10_000), "Most records in one GetRecords reply."),
    Key(
        "idleTimeBetweenReadsInMillis",
        "stream",
        "idle_between_reads",
        millis(50, 3_600_000),
        "Least time between two reads of a shard; Kinesis allows five a second and shard.",
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
)

_LEASES = (
    Key(
        "applicationName",
        "leases",
        "application",
        TABLE_NAME,
        "The application: names the lease table and the log's.",
        required=True,
    ),
    Key("tableName", "leases", "table", TABLE_NAME, "The lease table.", default="applicationName"),
    Key(
        "workerId",
        "leases",
        "worker_id",
        text("a name"),
        "This worker, unlike every other one of the application.",
        aliases=("workerIdentifier",),
        default="host name and a random part",
    ),
    Key(
        "failoverTimeMillis",
        "leases",
        "failover",
        millis(100, 3_600_000),
        "A lease that was not renewed for so long may be taken by another worker.",
    ),
    Key(
        "maxLeasesForWorker",
        "leases",
        "max_leases",
        whole(1),
        "Most shards that this worker takes.",
        default="no limit",
    ),
    Key(
        "cleanupLeasesUponShardCompletion",
        "leases",
        "cleanup_completed",
        flag(),
        "Whether leases of finished shards are deleted once their children are being read.",
    ),
)

_CHILD = (
    Key("executableName", "child", "command", command(), "The record processor's command line.", required=True),
    Key(
        "timeoutInSeconds",
        "child",
        "reply_timeout",
        seconds(1),
        "Longest wait for a child's next message.",
        default="no limit",
    ),
    Key(
        "shutdownGraceMillis",
        "child",
        "shutdown_grace",
        millis(0, 3_600_000),
        "Time that children have to answer shutdownRequested when the daemon ends (KCL's default is 0: none).",
    ),
)

KCL_KEYS: tuple[Key, ...] = _AWS + _STREAM + _LEASES + _CHILD
