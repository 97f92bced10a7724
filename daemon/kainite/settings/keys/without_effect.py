"""KCL's keys that are accepted without effect, and why.

These keys are no errors, so that a file of the Java MultiLangDaemon starts as it is; ``kainite run --check`` lists the
ones that are set. Together with the keys of :mod:`kainite.settings.keys.table` they are all keys of KCL. A text that
Java would turn into 0 or false is a warning; a text that keeps Java from starting is an error here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kainite.settings.kinds.values import ValueKind, choice, decimal, duration, flag, text, whole


class _BillingMode(StrEnum):
    PROVISIONED = "PROVISIONED"
    PAY_PER_REQUEST = "PAY_PER_REQUEST"


class _ClientVersion(StrEnum):
    V3 = "CLIENT_VERSION_CONFIG_3X"
    COMPATIBLE = "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"
    COMPATIBLE_PHASE1 = "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1"


@dataclass(frozen=True, slots=True)
class InertKey:
    """A key without effect.

    Attributes:
        name: the key as it is written.
        kind: says what KCL allows.
        default: KCL's default, as text.
        reason: says why the key has no effect here.
        strict: Java does not start with a wrong text.
    """

    name: str
    kind: ValueKind
    default: str
    reason: str
    strict: bool = False


_THREADS = "there are no thread pools: one process a shard, and threads only for calls of AWS"
_DEAD = "has no effect in KCL either"
_ON_DEMAND = "tables are made on demand, without tags"
_LEADER = "a leader of KCL 3.x decides; Kainite takes what such a leader assigns to it, and never leads"
_VERSION = "the daemon finds out by itself whether the fleet is one of KCL 2.x or 3.x, and follows it"
_NO_MEASUREMENTS = "Kainite reports empty measurements: the leader balances by each lease's throughput"
_SDK = "a matter of the SDK for Java; see awsReadTimeoutMillis"


def _inert(reason: str, *keys: tuple[str, ValueKind, str]) -> tuple[InertKey, ...]:
    return tuple(InertKey(name, kind, default, reason) for name, kind, default in keys)


def _table(prefix: str) -> tuple[InertKey, ...]:
    """Returns the keys for one of KCL 3.x's extra tables, except the key for its name."""
    billing = InertKey(f"{prefix}BillingMode", choice(_BillingMode), "PAY_PER_REQUEST", _ON_DEMAND, strict=True)
    return (
        billing,
        *_inert(
            _ON_DEMAND,
            (f"{prefix}ReadCapacity", whole(0), ""),
            (f"{prefix}WriteCapacity", whole(0), ""),
            (f"{prefix}PointInTimeRecoveryEnabled", flag(), "false"),
            (f"{prefix}DeletionProtectionEnabled", flag(), "false"),
            (f"{prefix}Tags", text("name=value,name=value", r"[^=,]+=[^=,]*(,[^=,]+=[^=,]*)*"), ""),
        ),
    )


INERT_KEYS: tuple[InertKey, ...] = (
    InertKey("clientVersionConfig", choice(_ClientVersion), _ClientVersion.V3, _VERSION, strict=True),
    *_inert(
        _VERSION,
        ("migrateAllEntitiesToLeaseTable", flag(), "false"),
        ("tableMigrationCompleteBakeTimeSeconds", whole(0), "86400"),
    ),
    *_inert(
        _THREADS,
        ("maxActiveThreads", whole(0), "0"),
        ("maxLeaseRenewalThreads", whole(1), "20"),
        ("leaseTableScanTotalSegments", whole(1), ""),
    ),
    *_inert(
        _DEAD,
        ("processingLanguage", text("any text"), ""),
        ("retryGetRecordsInSeconds", whole(0), ""),
        ("maxGetRecordsThreadPool", whole(0), ""),
        ("pollingConfig.retryGetRecordsInSeconds", whole(0), ""),
        ("pollingConfig.maxGetRecordsThreadPool", whole(0), ""),
        ("initialLeaseTableReadCapacity", whole(1), "10"),
        ("initialLeaseTableWriteCapacity", whole(1), "10"),
        ("validateSequenceNumberBeforeCheckpointing", flag(), ""),
    ),
    *_inert(
        _LEADER,
        ("maxThroughputPerHostKBps", decimal(), "no limit"),
        ("dampeningPercentage", whole(0, 100), "60"),
        ("reBalanceThresholdPercentage", whole(0, 100), "10"),
        ("allowThroughputOvershoot", flag(), "true"),
        ("varianceBalancingFrequency", whole(1), "3"),
        ("workerMetricsEMAAlpha", decimal(), "0.5"),
        ("staleWorkerMetricsEntryCleanupDuration", duration(), "P1D"),
    ),
    *_inert(
        _NO_MEASUREMENTS,
        ("inMemoryWorkerMetricsCaptureFrequencyMillis", whole(0), "1000"),
        ("noOfPersistedMetricsPerWorkerMetrics", whole(0), "10"),
    ),
    *_table("coordinatorState"),
    *_table("workerMetrics"),
)

WITHOUT_EFFECT: Mapping[str, InertKey] = {key.name: key for key in INERT_KEYS}

CLIENT_PREFIXES = ("kinesisClient.", "dynamoDbClient.", "cloudWatchClient.")
CLIENT_SETTERS: tuple[str, ...] = (
    "asyncConfiguration",
    "authSchemeProvider",
    "credentialsProvider",
    "defaultsMode",
    "endpointProvider",
    "httpClient",
    "httpClientBuilder",
    "overrideConfiguration",
)
"""The other settings of the SDK's client builders, alone or with more behind a dot (SDK 2.33)."""

_DYNAMODB_SETTERS = ("accountIdEndpointMode", "endpointDiscoveryEnabled")


def why_without_effect(key: str) -> str | None:
    """Returns why a key of KCL has no effect here; None for a key that is not KCL's, or that has an effect."""
    if key in WITHOUT_EFFECT:
        return WITHOUT_EFFECT[key].reason
    prefix, setter = _client_setter(key)
    known = CLIENT_SETTERS + (_DYNAMODB_SETTERS if prefix == "dynamoDbClient." else ())
    return _SDK if prefix and setter in known else None


def is_client_key(key: str) -> bool:
    """Tells whether a key is a nested one of an SDK client; Java does not start with a name that its builder lacks."""
    return bool(_client_setter(key)[0])


def _client_setter(key: str) -> tuple[str, str]:
    prefix = next((prefix for prefix in CLIENT_PREFIXES if key.startswith(prefix)), "")
    return prefix, key.removeprefix(prefix).partition(".")[0]
