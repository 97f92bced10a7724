"""Every metric, under KCL's names (reference/kcl_multilang.md §6): what dashboards and alarms go by today."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kainite.settings import MetricsLevel


class Unit(StrEnum):
    """CloudWatch's units."""

    COUNT = "Count"
    BYTES = "Bytes"
    MILLIS = "Milliseconds"


class Kind(StrEnum):
    """How observations add up."""

    COUNTER = "counter"  # a sum over time
    GAUGE = "gauge"  # the latest one counts
    TIMING = "timing"  # a distribution


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        operation: KCL's operation, the ``Operation`` dimension.
        name: KCL's name of the metric.
        kind, unit: how it adds up, and in what.
        help: one line.
        level: the level from which it is published to CloudWatch.
        per_shard: it carries a shard.
    """

    operation: str
    name: str
    kind: Kind
    unit: Unit
    help: str
    level: MetricsLevel = MetricsLevel.SUMMARY
    per_shard: bool = False


RECORDS_PROCESSED = Metric(
    "ProcessTask", "RecordsProcessed", Kind.COUNTER, Unit.COUNT, "Records given to children.", per_shard=True
)
DATA_BYTES_PROCESSED = Metric(
    "ProcessTask", "DataBytesProcessed", Kind.COUNTER, Unit.BYTES, "Payload of those records.", per_shard=True
)
MILLIS_BEHIND_LATEST = Metric(
    "ProcessTask", "MillisBehindLatest", Kind.GAUGE, Unit.MILLIS, "How far the shard is behind.", per_shard=True
)
PROCESS_RECORDS_TIME = Metric(
    "ProcessTask", "RecordProcessor.processRecords.Time", Kind.TIMING, Unit.MILLIS, "A batch at the child.",
    per_shard=True,
)  # fmt: skip
GET_RECORDS_TIME = Metric(
    "ProcessTask", "KinesisDataFetcher.getRecords.Time", Kind.TIMING, Unit.MILLIS, "One GetRecords call.",
    MetricsLevel.DETAILED, per_shard=True,
)  # fmt: skip
GET_RECORDS_SUCCESS = Metric(
    "ProcessTask", "KinesisDataFetcher.getRecords.Success", Kind.COUNTER, Unit.COUNT,
    "GetRecords calls: 1 for one that succeeded, 0 for one that failed.", MetricsLevel.DETAILED, per_shard=True,
)  # fmt: skip
EXPIRED_ITERATOR = Metric(
    "ProcessTask", "ExpiredIterator", Kind.COUNTER, Unit.COUNT, "Iterators that expired.", per_shard=True
)
INITIALIZE_TIME = Metric(
    "InitializeTask", "RecordProcessor.initialize.Time", Kind.TIMING, Unit.MILLIS, "A child's start.", per_shard=True
)
SHUTDOWN_TIME = Metric(
    "ShutdownTask", "RecordProcessor.shutdown.Time", Kind.TIMING, Unit.MILLIS, "A child's end.", per_shard=True
)
CURRENT_LEASES = Metric("RenewAllLeases", "CurrentLeases", Kind.GAUGE, Unit.COUNT, "Leases held.")
LOST_LEASES = Metric("RenewAllLeases", "LostLeases", Kind.COUNTER, Unit.COUNT, "Leases lost to other workers.")
TOTAL_LEASES = Metric("TakeLeases", "TotalLeases", Kind.GAUGE, Unit.COUNT, "Leases of the application.")
NUM_WORKERS = Metric("TakeLeases", "NumWorkers", Kind.GAUGE, Unit.COUNT, "Workers of the application.")
NEEDED_LEASES = Metric("TakeLeases", "NeededLeases", Kind.GAUGE, Unit.COUNT, "Leases short of this worker's part.")
LEASES_TO_TAKE = Metric("TakeLeases", "LeasesToTake", Kind.GAUGE, Unit.COUNT, "Leases chosen to be taken.")
TAKEN_LEASES = Metric("TakeLeases", "TakenLeases", Kind.COUNTER, Unit.COUNT, "Leases taken.")
UNTAKEN_LEASES = Metric("TakeLeases", "UntakenLeases", Kind.COUNTER, Unit.COUNT, "Leases that another took first.")
EXPIRED_LEASES = Metric("TakeLeases", "ExpiredLeases", Kind.GAUGE, Unit.COUNT, "Leases that nobody renews.")
VERY_OLD_LEASES = Metric("TakeLeases", "VeryOldLeases", Kind.GAUGE, Unit.COUNT, "Those for three failover times.")
LEASE_SPILLOVER = Metric("TakeLeases", "LeaseSpillover", Kind.GAUGE, Unit.COUNT, "Leases beyond maxLeasesForWorker.")
PARTIAL_STREAMS = Metric(
    "PeriodicShardSyncManager", "NumStreamsWithPartialLeases", Kind.GAUGE, Unit.COUNT, "1 while leases leave a hole."
)
STREAMS_TO_SYNC = Metric(
    "PeriodicShardSyncManager", "NumStreamsToSync", Kind.GAUGE, Unit.COUNT, "1 when one is mended."
)
IS_LEADER = Metric("LeaderDecider", "IsLeader", Kind.GAUGE, Unit.COUNT, "1 while this worker is the leader.")
CHILD_FAILURES = Metric("Child", "Failures", Kind.COUNTER, Unit.COUNT, "Children that failed.", per_shard=True)

METRICS: tuple[Metric, ...] = (
    RECORDS_PROCESSED, DATA_BYTES_PROCESSED, MILLIS_BEHIND_LATEST, PROCESS_RECORDS_TIME, GET_RECORDS_TIME,
    GET_RECORDS_SUCCESS, EXPIRED_ITERATOR, INITIALIZE_TIME, SHUTDOWN_TIME, CURRENT_LEASES, LOST_LEASES, TOTAL_LEASES,
    NUM_WORKERS, NEEDED_LEASES, LEASES_TO_TAKE, TAKEN_LEASES, UNTAKEN_LEASES, EXPIRED_LEASES, VERY_OLD_LEASES,
    LEASE_SPILLOVER, PARTIAL_STREAMS, STREAMS_TO_SYNC, IS_LEADER, CHILD_FAILURES,
)  # fmt: skip
