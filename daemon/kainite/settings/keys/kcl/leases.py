"""KCL's keys for the lease table, and for this worker among the others of its application."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import TABLE_NAME, flag, millis, text, whole

_WORKER = (
    Key(
        "applicationName",
        "leases",
        "application",
        TABLE_NAME,
        "The application: names the lease table and the log's, the metrics and the fan-out consumer.",
        required=True,
    ),
    Key("tableName", "leases", "table", TABLE_NAME, "The lease table.", default="applicationName"),
    Key(
        "workerId",
        "leases",
        "worker_id",
        text("a name"),
        "This worker's name, unlike that of every other worker of the application.",
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
        "leaseAssignmentIntervalMillis",
        "leases",
        "assignment_interval",
        millis(100, 3_600_000),
        "How often this worker looks for leases to take.",
        default="twice failoverTimeMillis",
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
        "maxLeasesToStealAtOneTime",
        "leases",
        "steal_at_once",
        whole(1, 1_000_000),
        "Most leases that are taken from a busier worker at a time.",
    ),
    Key(
        "enablePriorityLeaseAssignment",
        "leases",
        "priority",
        flag(),
        "Whether leases that no worker renewed for three times the failover time are taken beyond this worker's share.",
    ),
    Key(
        "cleanupLeasesUponShardCompletion",
        "leases",
        "cleanup_completed",
        flag(),
        "Whether leases of finished shards are deleted once their children are being read.",
    ),
    Key(
        "isGracefulLeaseHandoffEnabled",
        "leases",
        "handoff",
        flag(),
        "Whether a lease that is assigned to another worker is handed over gracefully, after its child was shut down.",
    ),
    Key(
        "gracefulLeaseHandoffTimeoutMillis",
        "leases",
        "handoff_timeout",
        millis(0, 3_600_000),
        "Longest wait for a graceful hand-over; after it the lease is handed over all the same.",
    ),
    Key(
        "schedulerInitializationBackoffTimeMillis",
        "leases",
        "init_backoff",
        millis(0, 3_600_000),
        "Wait before a failed start of the lease work is tried again.",
    ),
)

_TABLES = (
    Key(
        "leaseTableDeletionProtectionEnabled",
        "leases",
        "deletion_protection",
        flag(),
        "Whether the lease table is made with deletion protection.",
    ),
    Key(
        "leaseTablePitrEnabled",
        "leases",
        "point_in_time_recovery",
        flag(),
        "Whether the lease table is made with point-in-time recovery.",
    ),
    Key(
        "coordinatorStateTableName",
        "leases",
        "coordinator_table",
        TABLE_NAME,
        "Where a fleet of KCL 3.0 to 3.4 keeps its state.",
        default="applicationName-CoordinatorState",
    ),
    Key(
        "workerMetricsTableName",
        "leases",
        "worker_metrics_table",
        TABLE_NAME,
        "Where workers of a fleet of KCL 3.0 to 3.4 report their load.",
        default="applicationName-WorkerMetricStats",
    ),
)

_REPORTS = (
    Key(
        "disableWorkerMetrics",
        "leases",
        "report_worker_metrics",
        flag(inverted=True),
        "Whether this worker reports nothing to a KCL 3.x fleet; the fleet's leader then assigns nothing to it.",
    ),
    Key(
        "workerMetricsReporterFreqInMillis",
        "leases",
        "report_interval",
        millis(100, 3_600_000),
        "How often a worker in a KCL 3.x fleet reports.",
    ),
)

KEYS: tuple[Key, ...] = _WORKER + _TABLES + _REPORTS
