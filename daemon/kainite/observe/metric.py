"""Every metric, under KCL's names (docs/kcl.md, *Metrics*), so that existing dashboards and alarms go on working.

Levels and dimensions are those of KCL 3.1.3: ``ProcessTask`` has ``ShardId``, metrics of the whole worker have
``WorkerIdentifier``, the others have neither. (KCL's ``InitializeTask`` and ``ShutdownTask`` do not tell shards apart.)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kainite.settings import MetricsLevel


class MetricUnit(StrEnum):
    """CloudWatch's units."""

    COUNT = "Count"
    BYTES = "Bytes"
    MILLIS = "Milliseconds"


class MetricKind(StrEnum):
    """The way in which observations add up."""

    COUNTER = "counter"  # a sum over time
    GAUGE = "gauge"  # the latest one counts
    TIMING = "timing"  # a distribution


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric; compared by identity, so that looking one up costs nothing.

    Attributes:
        operation: KCL's operation, the ``Operation`` dimension.
        name: KCL's name of the metric.
        series: Prometheus' name of it, in base units: seconds where ``unit`` is milliseconds.
        kind, unit: how observations add up, and their unit.
        help: the metric's description, in one line.
        level: the level from which it is published to CloudWatch.
        per_shard: whether an observation carries a shard.
        per_worker: whether it carries the worker's id in CloudWatch.
    """

    operation: str
    name: str
    series: str
    kind: MetricKind
    unit: MetricUnit
    help: str
    level: MetricsLevel = MetricsLevel.SUMMARY
    per_shard: bool = False
    per_worker: bool = False


RECORDS_PROCESSED = Metric(
    "ProcessTask", "RecordsProcessed", "kainite_records_processed_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Records given to children.", per_shard=True,
)  # fmt: skip
DATA_BYTES_PROCESSED = Metric(
    "ProcessTask", "DataBytesProcessed", "kainite_data_processed_bytes_total", MetricKind.COUNTER, MetricUnit.BYTES,
    "Payload bytes of the records given to children.", per_shard=True,
)  # fmt: skip
MILLIS_BEHIND_LATEST = Metric(
    "ProcessTask", "MillisBehindLatest", "kainite_behind_latest_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time by which the shard is behind its newest record.", per_shard=True,
)  # fmt: skip
PROCESS_RECORDS_TIME = Metric(
    "ProcessTask", "RecordProcessor.processRecords.Time", "kainite_process_records_seconds",
    MetricKind.TIMING, MetricUnit.MILLIS,
    "Time that the child takes for a batch.", per_shard=True,
)  # fmt: skip
GET_RECORDS_TIME = Metric(
    "ProcessTask", "KinesisDataFetcher.getRecords.Time", "kainite_get_records_seconds",
    MetricKind.TIMING, MetricUnit.MILLIS,
    "Time of a GetRecords call.", MetricsLevel.DETAILED, per_shard=True,
)  # fmt: skip
GET_RECORDS_SUCCESS = Metric(
    "ProcessTask", "KinesisDataFetcher.getRecords.Success", "kainite_get_records_success_total", MetricKind.COUNTER,
    MetricUnit.COUNT, "GetRecords calls that succeeded (an observation of 1; 0 for one that failed).",
    MetricsLevel.DETAILED, per_shard=True,
)  # fmt: skip
EXPIRED_ITERATOR = Metric(
    "ProcessTask", "ExpiredIterator", "kainite_expired_iterators_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Iterators that expired.", per_shard=True,
)  # fmt: skip
THROTTLED_READS = Metric(
    "ProcessTask", "ThrottledReads", "kainite_throttled_reads_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Calls for records that Kinesis refused, because the shard's readers together ask for too much.", per_shard=True,
)  # fmt: skip
INITIALIZE_TIME = Metric(
    "InitializeTask", "RecordProcessor.initialize.Time", "kainite_child_initialize_seconds",
    MetricKind.TIMING, MetricUnit.MILLIS,
    "Time that a child takes to start.",
)  # fmt: skip
SHUTDOWN_TIME = Metric(
    "ShutdownTask", "RecordProcessor.shutdown.Time", "kainite_child_shutdown_seconds",
    MetricKind.TIMING, MetricUnit.MILLIS,
    "Time that a child takes to end.",
)  # fmt: skip
CHILD_FAILURES = Metric(
    "Child", "Failures", "kainite_child_failures_total", MetricKind.COUNTER, MetricUnit.COUNT, "Children that failed.",
    per_shard=True,
)  # fmt: skip
REJECTED_MESSAGES = Metric(
    "Child", "RejectedMessages", "kainite_child_rejected_messages_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Messages left out: not sendable, called bad by the child, or fatal to it.",
    per_shard=True,
)  # fmt: skip
CURRENT_LEASES = Metric(
    "RenewAllLeases",
    "CurrentLeases",
    "kainite_leases_held",
    MetricKind.GAUGE,
    MetricUnit.COUNT,
    "Leases held.",
    per_worker=True,
)
LOST_LEASES = Metric(
    "RenewAllLeases", "LostLeases", "kainite_leases_lost_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Leases lost to other workers.", per_worker=True,
)  # fmt: skip
TOTAL_LEASES = Metric(
    "TakeLeases", "TotalLeases", "kainite_leases", MetricKind.GAUGE, MetricUnit.COUNT, "Leases of the application.",
    MetricsLevel.DETAILED, per_worker=True,
)  # fmt: skip
NUM_WORKERS = Metric(
    "TakeLeases", "NumWorkers", "kainite_workers", MetricKind.GAUGE, MetricUnit.COUNT, "Workers of the application.",
    per_worker=True,
)  # fmt: skip
NEEDED_LEASES = Metric(
    "TakeLeases", "NeededLeases", "kainite_leases_needed", MetricKind.GAUGE, MetricUnit.COUNT,
    "Leases that this worker lacks of its share.", MetricsLevel.DETAILED, per_worker=True,
)  # fmt: skip
LEASES_TO_TAKE = Metric(
    "TakeLeases", "LeasesToTake", "kainite_leases_to_take",
    MetricKind.GAUGE, MetricUnit.COUNT, "Leases chosen to be taken.",
    MetricsLevel.DETAILED, per_worker=True,
)  # fmt: skip
TAKEN_LEASES = Metric(
    "TakeLeases", "TakenLeases", "kainite_leases_taken_total", MetricKind.COUNTER, MetricUnit.COUNT, "Leases taken.",
    per_worker=True,
)  # fmt: skip
UNTAKEN_LEASES = Metric(
    "TakeLeases", "UntakenLeases", "kainite_leases_untaken_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Leases that another worker took first.", per_worker=True,
)  # fmt: skip
EXPIRED_LEASES = Metric(
    "TakeLeases", "ExpiredLeases", "kainite_leases_expired", MetricKind.GAUGE, MetricUnit.COUNT,
    "Leases that no worker renewed for the failover time.", per_worker=True,
)  # fmt: skip
VERY_OLD_LEASES = Metric(
    "TakeLeases", "VeryOldLeases", "kainite_leases_very_old", MetricKind.GAUGE, MetricUnit.COUNT,
    "Leases that no worker renewed for three failover times.", per_worker=True,
)  # fmt: skip
LEASE_SPILLOVER = Metric(
    "TakeLeases", "LeaseSpillover", "kainite_leases_spillover", MetricKind.GAUGE, MetricUnit.COUNT,
    "Leases beyond maxLeasesForWorker.", per_worker=True,
)  # fmt: skip
PARTIAL_STREAMS = Metric(
    "PeriodicShardSyncManager", "NumStreamsWithPartialLeases", "kainite_partial_streams",
    MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while the leases leave hash keys of the stream uncovered.",
)  # fmt: skip
STREAMS_TO_SYNC = Metric(
    "PeriodicShardSyncManager", "NumStreamsToSync", "kainite_streams_to_sync", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 when a shard sync is due, which creates missing leases.",
)  # fmt: skip
IS_LEADER = Metric(
    "LeaderDecider", "LeaderDecider:IsLeader", "kainite_leader", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while this worker is the leader.", MetricsLevel.DETAILED,
)  # fmt: skip

UNITS_COLLECTED = Metric(
    "UnitsOfWork", "UnitsCollected", "kainite_units_collected_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that got their place in the log, failed ones included.",
)  # fmt: skip
UNIT_DELTAS = Metric(
    "UnitsOfWork", "DeltasCollected", "kainite_unit_deltas_collected_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Deltas of these units.",
)  # fmt: skip
UNITS_COMMITTED = Metric(
    "UnitsOfWork", "UnitsCommitted", "kainite_units_committed_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that the target has, as the log knows.",
)  # fmt: skip
UNITS_FAILED = Metric(
    "UnitsOfWork", "UnitsFailed", "kainite_units_failed_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that failed; one that fails again after a retry counts again.",
)  # fmt: skip
UNITS_DISCARDED = Metric(
    "UnitsOfWork", "UnitsDiscarded", "kainite_units_discarded_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that were discarded: by a person, overtaken by a correction, or sent again.",
)  # fmt: skip
OPEN_UNITS = Metric(
    "UnitsOfWork", "UnitsOpen", "kainite_open_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Units of work that are being collected: parts of them are still to come.",
)  # fmt: skip
UNITS_IN_PROGRESS = Metric(
    "UnitsOfWork", "UnitsInProgress", "kainite_units_in_progress", MetricKind.GAUGE, MetricUnit.COUNT,
    "Units of work in the log that the target does not have yet, as the log knows.",
)  # fmt: skip
FAILED_UNITS = Metric(
    "UnitsOfWork", "FailedUnits", "kainite_failed_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Failed units of work that nobody has retried or discarded.",
)  # fmt: skip
BLOCKED_UNITS = Metric(
    "UnitsOfWork", "BlockedUnits", "kainite_blocked_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Units of work that wait for a failed one.",
)  # fmt: skip
OLDEST_UNIT = Metric(
    "UnitsOfWork", "OldestUnit", "kainite_oldest_unit_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time for which this owner has known the oldest unit of work in progress; 0 without one.",
)  # fmt: skip
LATE_UNITS = Metric(
    "UnitsOfWork", "LateUnits", "kainite_late_units_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that hold what came late (uowEnd=watermark); uowGraceMillis was too short for them.",
)  # fmt: skip
WATERMARK_BEHIND = Metric(
    "UnitsOfWork", "WatermarkBehind", "kainite_watermark_behind_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time by which the watermark is behind (uowEnd=watermark); 0 while it is not known.",
)  # fmt: skip
LOG_BATCHES = Metric(
    "Log",
    "Batches",
    "kainite_log_batches_total",
    MetricKind.COUNTER,
    MetricUnit.COUNT,
    "Batches that the log's owner wrote.",
)
LOG_BYTES = Metric(
    "Log", "Bytes", "kainite_log_queued_bytes_total", MetricKind.COUNTER, MetricUnit.BYTES,
    "Bytes of entries that the log's owner wrote, before compression, approximately.",
)  # fmt: skip
LOG_APPEND_TIME = Metric(
    "Log", "Append.Time", "kainite_log_append_seconds", MetricKind.TIMING, MetricUnit.MILLIS,
    "Time from an append at the log's owner until it is durable.",
)  # fmt: skip
LOG_PUT_TIME = Metric(
    "Log", "Put.Time", "kainite_log_put_seconds", MetricKind.TIMING, MetricUnit.MILLIS,
    "Time until a batch of the log is durable, tries included.",
)  # fmt: skip
LOG_OWNED = Metric(
    "Log", "Owner", "kainite_log_owner", MetricKind.GAUGE, MetricUnit.COUNT, "1 while this process owns the log."
)
LOG_FOLLOWED = Metric(
    "Log", "Follower", "kainite_log_follower", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while this process appends through an owner elsewhere; neither: it reaches no log.",
)  # fmt: skip
LOG_SETTLED = Metric(
    "Log", "OwnerAge", "kainite_log_owner_age_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time since this process became the log's owner, or reached the one it appends through; 0 while it reaches none.",
)  # fmt: skip
LOG_PEERS = Metric(
    "Log", "Peers", "kainite_log_peers", MetricKind.GAUGE, MetricUnit.COUNT,
    "Processes that append through this one while it owns the log.",
)  # fmt: skip
LOG_MEMBER = Metric(
    "Log", "Member", "kainite_log_member", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while this process takes part in the log, whether or not it reaches its owner; 0 without unitsOfWork.",
)  # fmt: skip
LOG_UPKEEP_FAILURES = Metric(
    "Log", "UpkeepFailures", "kainite_log_upkeep_failures_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Times that the log's owner put its upkeep off, because the log's table, the audit trail or the target "
    "did not answer.",
)  # fmt: skip
LOG_REFUSED = Metric(
    "Log", "RefusedPeers", "kainite_log_refused_peers_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Connections to the log's ports that were not let in, had no right to what they asked for, or were cut.",
)  # fmt: skip
LOG_CREDIT = Metric(
    "Log", "UnansweredBytes", "kainite_log_unanswered_bytes", MetricKind.GAUGE, MetricUnit.BYTES,
    "Bytes of their appends that the owner has not answered; each may have 8 MiB.",
)  # fmt: skip
LOG_WAITING = Metric(
    "Log", "QueuedAppends", "kainite_log_waiting_appends", MetricKind.GAUGE, MetricUnit.COUNT,
    "Appends at the owner that are not durable yet.",
)  # fmt: skip
LOG_WAITING_BYTES = Metric(
    "Log", "QueuedBytes", "kainite_log_waiting_bytes", MetricKind.GAUGE, MetricUnit.BYTES,
    "Bytes of these appends, approximately; at 64 MiB appends wait.",
)  # fmt: skip

FEED_LAG = Metric(
    "Log", "Feed.Lag", "kainite_feed_lag_entries", MetricKind.GAUGE, MetricUnit.COUNT,
    "Durable entries that the slowest follower of the log has not taken; 0 without one.",
)  # fmt: skip

APPLIED_UNITS = Metric(
    "Apply", "UnitsCommitted", "kainite_apply_units_committed_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that the apply job committed, or found committed.",
)  # fmt: skip
APPLY_FAILURES = Metric(
    "Apply", "UnitsFailed", "kainite_apply_units_failed_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Units of work that the target refused.",
)  # fmt: skip
APPLY_WAITING = Metric(
    "Apply", "UnitsWaiting", "kainite_apply_waiting_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Units of work that the apply job has read and not yet tried: its lag in units.",
)  # fmt: skip
APPLY_DELAYED = Metric(
    "Apply", "UnitsDelayed", "kainite_apply_delayed_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Units of work that are tried again later, because rows were locked.",
)  # fmt: skip
APPLY_FAILED = Metric(
    "Apply", "FailedUnits", "kainite_apply_failed_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Failed units of work that nobody has retried or discarded.",
)  # fmt: skip
APPLY_BLOCKED = Metric(
    "Apply", "BlockedUnits", "kainite_apply_blocked_units", MetricKind.GAUGE, MetricUnit.COUNT,
    "Units of work that wait for a failed one.",
)  # fmt: skip
APPLY_LAG = Metric(
    "Apply", "Lag", "kainite_apply_lag_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time since the apply job read the oldest unit of work that waits; 0 without one.",
)  # fmt: skip
COMMON_MARK_LAG = Metric(
    "Apply", "CommonMarkLag", "kainite_apply_common_mark_lag_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "With several targets: time since the apply job read the oldest unit that some target lacks; 0 without one.",
)  # fmt: skip
APPLY_PAUSED = Metric(
    "Apply", "Paused", "kainite_apply_paused", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while a person has paused applying (kainite log pause), else 0; from the apply job, and from the log's owner.",
)  # fmt: skip
APPLY_PREPARED_AGE = Metric(
    "Apply", "OldestPreparedTransaction", "kainite_apply_oldest_prepared_transaction_seconds", MetricKind.GAUGE,
    MetricUnit.MILLIS,
    "Age of the oldest transaction of several targets (targetCommit=atomic) that is prepared and not finished, else 0.",
)  # fmt: skip
APPLY_FOLLOWED = Metric(
    "Apply", "Followed", "kainite_apply_followed", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while the log's owner sends what becomes durable; 0 while the log is read.",
)  # fmt: skip
REPLICA_LOADING = Metric(
    "Replica", "TablesLoading", "kainite_replica_tables_loading", MetricKind.GAUGE, MetricUnit.COUNT,
    "Tables of a replica that are being loaded and are not live; from the apply job.",
)  # fmt: skip
REPLICA_FAILED = Metric(
    "Replica", "TablesFailed", "kainite_replica_tables_failed", MetricKind.GAUGE, MetricUnit.COUNT,
    "Tables of a replica whose load has failed.",
)  # fmt: skip
REPLICA_GIVEN_UP = Metric(
    "Replica", "TablesGivenUp", "kainite_replica_tables_given_up", MetricKind.GAUGE, MetricUnit.COUNT,
    "Tables of a replica that were given up, as too much was held of them: kainite replicate reload alone mends them.",
)  # fmt: skip
REPLICA_RANGES_LEFT = Metric(
    "Replica", "RangesLeft", "kainite_replica_ranges_left", MetricKind.GAUGE, MetricUnit.COUNT,
    "Ranges of rows that a load has still to copy.",
)  # fmt: skip
VERIFY_NOT_PASSED = Metric(
    "Replica", "NotPassed", "kainite_verify_not_passed", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while the latest comparison of a replica with its source has found rows that differ, or was not sure; else 0.",
)  # fmt: skip
VERIFY_DIFFERENT = Metric(
    "Replica", "DifferentRows", "kainite_verify_different_rows", MetricKind.GAUGE, MetricUnit.COUNT,
    "Rows that differed in the latest comparison, and that no unit of work explains.",
)  # fmt: skip
VERIFY_AGE = Metric(
    "Replica", "VerifyAge", "kainite_verify_age_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time since the latest comparison ended; 0 without one.",
)  # fmt: skip
VERIFY_GOOD_AGE = Metric(
    "Replica", "VerifyGoodAge", "kainite_verify_good_age_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time since the latest comparison ended that passed; 0 without one.",
)  # fmt: skip
VERIFY_LATE = Metric(
    "Replica", "VerifyLate", "kainite_verify_late", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while comparisons are to be repeated (kainite verify --every) and none has passed for 1.5 intervals; else 0.",
)  # fmt: skip
MICRO_BATCHES = Metric(
    "Apply", "MicroBatches", "kainite_apply_micro_batches_total", MetricKind.COUNTER, MetricUnit.COUNT, "Micro-batches."
)
MICRO_BATCH_TIME = Metric(
    "Apply", "MicroBatch.Time", "kainite_apply_micro_batch_seconds", MetricKind.TIMING, MetricUnit.MILLIS,
    "Time of a micro-batch, from its plan to the last outcome.",
)  # fmt: skip
POLL_TIME = Metric(
    "Apply",
    "Poll.Time",
    "kainite_apply_poll_seconds",
    MetricKind.TIMING,
    MetricUnit.MILLIS,
    "Time of a read of the log's index.",
)
RUN_TIME = Metric(
    "Apply", "Run.Time", "kainite_apply_run_seconds", MetricKind.TIMING, MetricUnit.MILLIS,
    "Time of a micro-batch's Spark job: reading, assembling, committing.",
)  # fmt: skip
OUTCOMES_TIME = Metric(
    "Apply", "Outcomes.Time", "kainite_apply_outcomes_seconds", MetricKind.TIMING, MetricUnit.MILLIS,
    "Time until outcomes are durable.",
)  # fmt: skip
APPLY_GROUPS = Metric(
    "Apply", "Groups", "kainite_apply_groups_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Transactions at the target: groups of units that were tried.",
)  # fmt: skip
GROUPS_SPLIT = Metric(
    "Apply", "GroupsSplit", "kainite_apply_groups_split_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Groups that the target did not take, and that were cut in two.",
)  # fmt: skip
EXTRACT_RECORDS = Metric(
    "Extract", "Records", "kainite_extract_records_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Messages of the extractor that were put on the stream.",
)  # fmt: skip
EXTRACT_FAILURES = Metric(
    "Extract", "Failures", "kainite_extract_failures_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Failures of the extractor: it died, was silent too long, or broke the protocol.",
)  # fmt: skip
EXTRACT_QUIET = Metric(
    "Extract", "Quiet", "kainite_extract_quiet_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time since the extractor last answered or wrote a message.",
)  # fmt: skip
EXTRACT_WAITING_BYTES = Metric(
    "Extract", "WaitingBytes", "kainite_extract_waiting_bytes", MetricKind.GAUGE, MetricUnit.BYTES,
    "Bytes of messages that the extractor gave and that are not on the stream yet.",
)  # fmt: skip
EXTRACT_NEWEST_COMMIT_AGE = Metric(
    "Extract", "NewestCommitAge", "kainite_extract_newest_commit_age_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time since the newest transaction that the extractor gave committed at the source, where it says so.",
)  # fmt: skip
EXTRACT_HELD_BYTES = Metric(
    "Extract", "SourceHeldBytes", "kainite_extract_source_held_bytes", MetricKind.GAUGE, MetricUnit.BYTES,
    "Bytes that the source keeps for this extraction, such as WAL for its slot, where the extractor says so.",
)  # fmt: skip
EXTRACT_LEFT_BYTES = Metric(
    "Extract", "SourceLeftBytes", "kainite_extract_source_left_bytes", MetricKind.GAUGE, MetricUnit.BYTES,
    "Bytes that the source will write before it drops what this extraction needs, where there is a limit.",
)  # fmt: skip
HEALTHY = Metric(
    "Process", "Healthy", "kainite_healthy", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while /health answers 200; 0 while it names a problem.", per_worker=True,
)  # fmt: skip
READY = Metric(
    "Process", "Ready", "kainite_ready", MetricKind.GAUGE, MetricUnit.COUNT,
    "1 while /ready answers 200: the process does its work.", MetricsLevel.DETAILED, per_worker=True,
)  # fmt: skip
PROBLEMS = Metric(
    "Process", "Problems", "kainite_problems", MetricKind.GAUGE, MetricUnit.COUNT,
    "Problems that /health names.", MetricsLevel.DETAILED, per_worker=True,
)  # fmt: skip
LOG_LINES_DROPPED = Metric(
    "Process", "LogLinesDropped", "kainite_log_lines_dropped_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Lines on standard error that were dropped because nobody read them in time.",
)  # fmt: skip

STREAM_RETENTION = Metric(
    "Stream", "Retention", "kainite_stream_retention_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time for which the stream keeps records, read once a day where unitsOfWork is on; 0 while it is not known.",
    MetricsLevel.DETAILED,
)  # fmt: skip

STREAMS_NOT_OPEN = Metric(
    "Stream", "NotOpen", "kainite_streams_not_open", MetricKind.GAUGE, MetricUnit.COUNT,
    "Streams of streamNames that this daemon does not read: Kinesis refused them at the latest attempt.",
    per_worker=True,
)  # fmt: skip

FLEET_WORKERS = Metric(
    "Fleet", "Workers", "kainite_fleet_workers", MetricKind.GAUGE, MetricUnit.COUNT,
    "Workers of the fleet for duties that are alive, as this one sees it; 0 while the fleet's table does not answer.",
    per_worker=True,
)  # fmt: skip
DUTIES_RUNNING = Metric(
    "Fleet", "DutiesRunning", "kainite_duties_running", MetricKind.GAUGE, MetricUnit.COUNT,
    "Duties that run, on any worker.", per_worker=True,
)  # fmt: skip
DUTIES_WAITING = Metric(
    "Fleet", "DutiesWaiting", "kainite_duties_waiting", MetricKind.GAUGE, MetricUnit.COUNT,
    "Duties that are to run and do not: no worker has them, or their program starts or waits after a failure.",
    per_worker=True,
)  # fmt: skip
DUTIES_IN_ERROR = Metric(
    "Fleet", "DutiesInError", "kainite_duties_in_error", MetricKind.GAUGE, MetricUnit.COUNT,
    "Duties that failed too often, and that an operator has to start again.", per_worker=True,
)  # fmt: skip

CERTIFICATE_EXPIRY = Metric(
    "Log", "CertificateExpiry", "kainite_certificate_expiry_seconds", MetricKind.GAUGE, MetricUnit.MILLIS,
    "Time until the first certificate in logCertificateFile ends; 0 without one.", MetricsLevel.DETAILED,
)  # fmt: skip
ACCESS_FILES_READ = Metric(
    "Log", "AccessFilesRead", "kainite_access_files_read_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Changed certificates and secrets of the log's ports that are in force.", MetricsLevel.DETAILED,
)  # fmt: skip
ACCESS_FILES_REFUSED = Metric(
    "Log", "AccessFilesRefused", "kainite_access_files_refused_total", MetricKind.COUNTER, MetricUnit.COUNT,
    "Changed certificates and secrets of the log's ports that cannot be used, so that the old ones hold.",
    MetricsLevel.DETAILED,
)  # fmt: skip

PROCESS_METRICS: tuple[Metric, ...] = (HEALTHY, READY, PROBLEMS)
"""The metrics that every process publishes, from its own verdict (:mod:`kainite.observe.publishing`)."""

DAEMON_METRICS: tuple[Metric, ...] = (
    RECORDS_PROCESSED, DATA_BYTES_PROCESSED, MILLIS_BEHIND_LATEST, PROCESS_RECORDS_TIME, GET_RECORDS_TIME,
    GET_RECORDS_SUCCESS, EXPIRED_ITERATOR, THROTTLED_READS, INITIALIZE_TIME, SHUTDOWN_TIME, CURRENT_LEASES, LOST_LEASES,
    TOTAL_LEASES, NUM_WORKERS, NEEDED_LEASES, LEASES_TO_TAKE, TAKEN_LEASES, UNTAKEN_LEASES, EXPIRED_LEASES,
    VERY_OLD_LEASES, LEASE_SPILLOVER, PARTIAL_STREAMS, STREAMS_TO_SYNC, IS_LEADER, CHILD_FAILURES,
    REJECTED_MESSAGES, UNITS_COLLECTED, UNIT_DELTAS, UNITS_COMMITTED, UNITS_FAILED, UNITS_DISCARDED,
    OPEN_UNITS, UNITS_IN_PROGRESS, FAILED_UNITS, BLOCKED_UNITS, OLDEST_UNIT, LATE_UNITS, WATERMARK_BEHIND,
    LOG_BATCHES, LOG_BYTES, LOG_APPEND_TIME, LOG_PUT_TIME, FEED_LAG, LOG_OWNED, LOG_FOLLOWED, LOG_SETTLED, LOG_PEERS,
    LOG_REFUSED, LOG_CREDIT, LOG_WAITING, LOG_WAITING_BYTES, LOG_LINES_DROPPED,
    CERTIFICATE_EXPIRY, ACCESS_FILES_READ, ACCESS_FILES_REFUSED,
    LOG_MEMBER, LOG_UPKEEP_FAILURES, STREAM_RETENTION, STREAMS_NOT_OPEN, APPLY_PAUSED,
    FLEET_WORKERS, DUTIES_RUNNING, DUTIES_WAITING, DUTIES_IN_ERROR, *PROCESS_METRICS,
)  # fmt: skip
"""The metrics that ``kainite run`` and ``kainite log serve`` publish."""

APPLY_METRICS: tuple[Metric, ...] = (
    APPLIED_UNITS, APPLY_FAILURES, APPLY_WAITING, APPLY_DELAYED, APPLY_FAILED, APPLY_BLOCKED, APPLY_LAG,
    COMMON_MARK_LAG, APPLY_FOLLOWED, APPLY_PAUSED, APPLY_PREPARED_AGE, MICRO_BATCHES, MICRO_BATCH_TIME,
    POLL_TIME, RUN_TIME, OUTCOMES_TIME, APPLY_GROUPS, GROUPS_SPLIT,
    REPLICA_LOADING, REPLICA_FAILED, REPLICA_GIVEN_UP, REPLICA_RANGES_LEFT, VERIFY_NOT_PASSED, VERIFY_DIFFERENT,
    VERIFY_AGE, VERIFY_GOOD_AGE, VERIFY_LATE,
    LOG_LINES_DROPPED, CERTIFICATE_EXPIRY, ACCESS_FILES_READ, ACCESS_FILES_REFUSED, *PROCESS_METRICS,
)  # fmt: skip
"""The metrics that ``kainite apply`` publishes."""

EXTRACT_METRICS: tuple[Metric, ...] = (
    EXTRACT_RECORDS, EXTRACT_FAILURES, EXTRACT_QUIET, EXTRACT_WAITING_BYTES, EXTRACT_NEWEST_COMMIT_AGE,
    EXTRACT_HELD_BYTES, EXTRACT_LEFT_BYTES, LOG_LINES_DROPPED, *PROCESS_METRICS,
)  # fmt: skip
"""The metrics that ``kainite extract`` publishes."""

METRICS = tuple(dict.fromkeys((*DAEMON_METRICS, *APPLY_METRICS, *EXTRACT_METRICS)))
