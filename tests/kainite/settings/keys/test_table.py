"""The table of keys against the sections that it fills, and against KCL's own keys."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from kainite.settings.keys.key import Key
from kainite.settings.keys.table import DEFAULTS, KEYS, SECTIONS
from kainite.settings.keys.without_effect import WITHOUT_EFFECT, why_without_effect

# docs/kcl.md, Settings
_KCL = """
executableName applicationName streamName streamArn processingLanguage maxActiveThreads timeoutInSeconds
shutdownGraceMillis workerId workerIdentifier tableName regionName kinesisEndpoint dynamoDBEndpoint
kinesisClient.region dynamoDbClient.region cloudWatchClient.endpointOverride AwsCredentialsProvider
AwsCredentialsProviderDynamoDB AwsCredentialsProviderCloudWatch initialPositionInStream
initialPositionInStreamExtended retrievalMode maxRecords idleTimeBetweenReadsInMillis
millisBehindLatestThresholdForReducedTps retryGetRecordsInSeconds maxGetRecordsThreadPool pollingConfig.maxRecords
fanoutConfig.consumerArn fanoutConfig.consumerName fanoutConfig.maxDescribeStreamSummaryRetries
fanoutConfig.maxDescribeStreamConsumerRetries fanoutConfig.registerStreamConsumerRetries
fanoutConfig.retryBackoffMillis failoverTimeMillis leaseAssignmentIntervalMillis maxLeasesForWorker
maxLeasesToStealAtOneTime enablePriorityLeaseAssignment cleanupLeasesUponShardCompletion ignoreUnexpectedChildShards
shardSyncIntervalMillis maxLeaseRenewalThreads listShardsBackoffTimeInMillis maxListShardsRetryAttempts
initialLeaseTableReadCapacity initialLeaseTableWriteCapacity leaseTableDeletionProtectionEnabled leaseTablePitrEnabled
leaseTableScanTotalSegments isGracefulLeaseHandoffEnabled gracefulLeaseHandoffTimeoutMillis
parentShardPollIntervalMillis skipShardSyncAtWorkerInitializationIfLeasesExist
schedulerInitializationBackoffTimeMillis clientVersionConfig migrateAllEntitiesToLeaseTable
tableMigrationCompleteBakeTimeSeconds coordinatorStateTableName coordinatorStateBillingMode
coordinatorStateTags coordinatorStateReadCapacity coordinatorStateWriteCapacity
coordinatorStatePointInTimeRecoveryEnabled coordinatorStateDeletionProtectionEnabled workerMetricsBillingMode
workerMetricsWriteCapacity workerMetricsPointInTimeRecoveryEnabled workerMetricsDeletionProtectionEnabled
workerMetricsTags
workerMetricsTableName workerMetricsReadCapacity inMemoryWorkerMetricsCaptureFrequencyMillis
workerMetricsReporterFreqInMillis noOfPersistedMetricsPerWorkerMetrics disableWorkerMetrics maxThroughputPerHostKBps
dampeningPercentage reBalanceThresholdPercentage allowThroughputOvershoot varianceBalancingFrequency
workerMetricsEMAAlpha staleWorkerMetricsEntryCleanupDuration taskBackoffTimeMillis logWarningForTaskAfterMillis
callProcessRecordsEvenForEmptyRecordList metricsLevel metricsBufferTimeMillis metricsMaxQueueSize
metricsEnabledDimensions validateSequenceNumberBeforeCheckpointing
"""
KCL_KEYS = _KCL.split()

SPELLINGS = [spelling for key in KEYS for spelling in (key.name, *key.aliases)]


def test_each_field_is_filled_by_exactly_one_key() -> None:
    fields = {(section, field.name) for section, kind in SECTIONS.items() for field in dataclasses.fields(kind)}
    filled = Counter((key.section, key.field) for key in KEYS)

    inner = {("aws", "kinesis"), ("aws", "dynamodb"), ("aws", "cloudwatch"), ("child", "markers")}
    assert set(filled) == fields - {("log", "owner")} - inner
    assert set(filled.values()) == {1}


def test_no_key_has_two_meanings() -> None:
    assert not [spelling for spelling, times in Counter(SPELLINGS).items() if times > 1]
    assert not set(SPELLINGS) & set(WITHOUT_EFFECT)


@pytest.mark.parametrize("key", KCL_KEYS)
def test_every_key_of_kcl_is_known(key: str) -> None:
    assert key in SPELLINGS or why_without_effect(key)


def test_an_unheard_of_key_is_not_taken_for_one_of_kcl() -> None:
    assert why_without_effect("logTableName2") is None


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_default_reads_back_as_it_is_shown(key: Key) -> None:
    value = DEFAULTS.get((key.section, key.field))
    if value not in (None, ()):
        assert key.kind.parse(key.kind.show(value), Path.cwd()) == value
