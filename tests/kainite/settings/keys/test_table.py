"""The table of keys against the sections that it fills, and against KCL's own keys."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from kainite.settings import Settings, examine
from kainite.settings.key import SettingKey
from kainite.settings.keys.table import DEFAULTS, KEY_BY_SPELLING, KEYS, SECTIONS, value_of
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


def test_every_field_of_the_settings_with_values_of_a_file_is_a_section() -> None:
    others = {"path", "ignored", "unknown", "warnings", "options", "of_streams", "of_targets", "target_name"}
    fields = {field.name for field in dataclasses.fields(Settings)} - others

    assert fields == {name for name in SECTIONS if "." not in name}


def test_a_section_that_occurs_three_times_has_keys_of_its_own_each_time() -> None:
    clients = {key.name: (key.section, key.field) for key in KEYS if key.field in ("credentials", "fips")}

    assert clients == {
        "AwsCredentialsProvider": ("aws.kinesis", "credentials"),
        "AwsCredentialsProviderDynamoDB": ("aws.dynamodb", "credentials"),
        "AwsCredentialsProviderCloudWatch": ("aws.cloudwatch", "credentials"),
        "kinesisClient.fipsEnabled": ("aws.kinesis", "fips"),
        "dynamoDbClient.fipsEnabled": ("aws.dynamodb", "fips"),
        "cloudWatchClient.fipsEnabled": ("aws.cloudwatch", "fips"),
    }


def test_no_key_has_two_meanings() -> None:
    assert not [spelling for spelling, times in Counter(SPELLINGS).items() if times > 1]
    assert not set(SPELLINGS) & set(WITHOUT_EFFECT)


def test_each_key_is_found_by_its_spellings_and_each_has_a_value_in_the_settings() -> None:
    options = ["--application-name=app", "--stream-name=s", "--executable-name=x"]
    settings = examine(None, options=options, environment={}).settings_or_raise()

    assert {KEY_BY_SPELLING[spelling] for spelling in SPELLINGS} == set(KEYS)
    values = [value_of(settings, key) for key in KEYS]
    assert values.count("app") == 2  # applicationName, and tableName after it


@pytest.mark.parametrize("key", KCL_KEYS)
def test_every_key_of_kcl_is_known(key: str) -> None:
    assert key in SPELLINGS or why_without_effect(key)


def test_an_unheard_of_key_is_not_taken_for_one_of_kcl() -> None:
    assert why_without_effect("logTableName2") is None


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_default_reads_back_as_it_is_shown(key: SettingKey) -> None:
    value = DEFAULTS.get((key.section, key.field))
    if value not in (None, ()):
        assert key.kind.parse(key.kind.show(value), Path.cwd()) == value
