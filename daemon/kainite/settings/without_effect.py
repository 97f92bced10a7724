"""KCL's keys that this release accepts without acting on them, and why.

They are no errors, so that a file of the Java MultiLangDaemon starts as it is; ``kainite run --check``
lists the ones that a file sets. The list is reference/kcl_multilang.md §4 without the keys of
:mod:`kainite.settings.table`.
"""

from __future__ import annotations

from collections.abc import Mapping

_JVM = "a matter of the Java daemon's threads or SDK"
_DEAD = "has no effect in KCL either"
_POLLING = "records are read by polling"
_CREDENTIALS = "credentials come from boto3's default chain"
_METRICS = "no metrics are published yet"
_ON_DEMAND = "tables are made on demand, without extras"
_ASSIGNMENT = "leases are taken as KCL 2.x takes them"
_ONE_HOST = "leases are not stolen or handed over yet"
_FIXED = "fixed here"

_REASONS: Mapping[str, tuple[str, ...]] = {
    _JVM: ("maxActiveThreads", "maxLeaseRenewalThreads", "leaseTableScanTotalSegments", "logWarningForTaskAfterMillis"),
    _DEAD: (
        "processingLanguage",
        "retryGetRecordsInSeconds",
        "maxGetRecordsThreadPool",
        "initialLeaseTableReadCapacity",
        "initialLeaseTableWriteCapacity",
        "validateSequenceNumberBeforeCheckpointing",
    ),
    _POLLING: ("retrievalMode",),
    _CREDENTIALS: (
        "AwsCredentialsProvider",
        "AwsCredentialsProviderDynamoDB",
        "AwsCredentialsProviderCloudWatch",
        "awsCredentialsProvider",
        "awsCredentialsProviderDynamoDB",
        "awsCredentialsProviderCloudWatch",
    ),
    _METRICS: (
        "metricsLevel",
        "metricsBufferTimeMillis",
        "metricsMaxQueueSize",
        "metricsEnabledDimensions",
        "disableWorkerMetrics",
        "inMemoryWorkerMetricsCaptureFrequencyMillis",
        "workerMetricsReporterFreqInMillis",
        "noOfPersistedMetricsPerWorkerMetrics",
        "maxThroughputPerHostKBps",
        "workerMetricsEMAAlpha",
        "staleWorkerMetricsEntryCleanupDuration",
    ),
    _ON_DEMAND: ("leaseTableDeletionProtectionEnabled", "leaseTablePitrEnabled"),
    _ASSIGNMENT: (
        "leaseAssignmentIntervalMillis",
        "enablePriorityLeaseAssignment",
        "dampeningPercentage",
        "reBalanceThresholdPercentage",
        "allowThroughputOvershoot",
        "varianceBalancingFrequency",
        "clientVersionConfig",
        "migrateAllEntitiesToLeaseTable",
        "tableMigrationCompleteBakeTimeSeconds",
    ),
    _ONE_HOST: (
        "maxLeasesToStealAtOneTime",
        "isGracefulLeaseHandoffEnabled",
        "gracefulLeaseHandoffTimeoutMillis",
    ),
    _FIXED: (
        "ignoreUnexpectedChildShards",
        "listShardsBackoffTimeInMillis",
        "maxListShardsRetryAttempts",
        "skipShardSyncAtWorkerInitializationIfLeasesExist",
        "schedulerInitializationBackoffTimeMillis",
        "taskBackoffTimeMillis",
        "millisBehindLatestThresholdForReducedTps",
    ),
}

PREFIXES_WITHOUT_EFFECT: Mapping[str, str] = {
    "kinesisClient.": _JVM,
    "dynamoDbClient.": _JVM,
    "cloudWatchClient.": _METRICS,
    "pollingConfig.": "use the keys without `pollingConfig.`",
    "fanoutConfig.": _POLLING,
    "coordinatorState": _ASSIGNMENT,
    "workerMetrics": _METRICS,
}

WITHOUT_EFFECT: Mapping[str, str] = {key: reason for reason, keys in _REASONS.items() for key in keys}


def why_without_effect(key: str) -> str | None:
    """Why a key of KCL has no effect here; None for a key that is not KCL's."""
    if key in WITHOUT_EFFECT:
        return WITHOUT_EFFECT[key]
    return next((reason for prefix, reason in PREFIXES_WITHOUT_EFFECT.items() if key.startswith(prefix)), None)
