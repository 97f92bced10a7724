"""The section for the lease table, and for this worker among the others of its application."""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.settings.key import Reload, kcl, kcl_key, own
from kainite.settings.kinds.values import TABLE_NAME, flag, millis, text, whole


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The lease table and this worker's part in it."""

    application: str = field(
        metadata=kcl_key(
            "applicationName",
            TABLE_NAME,
            Reload.RESTART,
            "The application: names the lease table and the log's, the metrics and the fan-out consumer.",
            required=True,
        )
    )
    table: str = field(
        metadata=kcl_key("tableName", TABLE_NAME, Reload.RESTART, "The lease table.", otherwise="applicationName")
    )
    worker_id: str = field(
        metadata=kcl_key(
            "workerId",
            text("a name"),
            Reload.RESTART,
            "This worker's name, unlike that of every other worker of the application.",
            aliases=("workerIdentifier",),
            otherwise="host name and a random part",
        )
    )
    failover: float = kcl(
        "failoverTimeMillis",
        millis(100, 3_600_000),
        Reload.NOW,
        "A lease that was not renewed for so long may be taken by another worker.",
        default=10.0,
    )
    max_leases: int | None = kcl(
        "maxLeasesForWorker",
        whole(1),
        Reload.NOW,
        "Most shards that this worker takes.",
        default=None,
        otherwise="no limit",
    )
    cleanup_completed: bool = kcl(
        "cleanupLeasesUponShardCompletion",
        flag(),
        Reload.NOW,
        "Whether leases of finished shards are deleted once their children are being read.",
        default=True,
    )
    assignment_interval: float | None = kcl(
        "leaseAssignmentIntervalMillis",
        millis(100, 3_600_000),
        Reload.NOW,
        "How often this worker looks for leases to take.",
        default=None,
        otherwise="twice failoverTimeMillis",
    )
    steal_at_once: int = kcl(
        "maxLeasesToStealAtOneTime",
        whole(1, 1_000_000),
        Reload.NOW,
        "Most leases that are taken from a busier worker at a time.",
        default=1,
    )
    priority: bool = kcl(
        "enablePriorityLeaseAssignment",
        flag(),
        Reload.NOW,
        "Whether leases that no worker renewed for three times the failover time are taken beyond this worker's share.",
        default=True,
    )
    handoff: bool = kcl(
        "isGracefulLeaseHandoffEnabled",
        flag(),
        Reload.NOW,
        "Whether a lease that is assigned to another worker is handed over gracefully, after its child was shut down.",
        default=True,
    )
    handoff_timeout: float = kcl(
        "gracefulLeaseHandoffTimeoutMillis",
        millis(0, 3_600_000),
        Reload.NOW,
        "Longest wait for a graceful hand-over; after it the lease is handed over all the same.",
        default=30.0,
    )
    init_backoff: float = kcl(
        "schedulerInitializationBackoffTimeMillis",
        millis(0, 3_600_000),
        Reload.RESTART,
        "Wait before a failed start of the lease work is tried again.",
        default=1.0,
    )
    deletion_protection: bool = kcl(
        "leaseTableDeletionProtectionEnabled",
        flag(),
        Reload.RESTART,
        "Whether the lease table is made with deletion protection.",
        default=False,
    )
    point_in_time_recovery: bool = kcl(
        "leaseTablePitrEnabled",
        flag(),
        Reload.RESTART,
        "Whether the lease table is made with point-in-time recovery.",
        default=False,
    )
    former_streams_after: float = own(
        "formerStreamLeasesMillis",
        millis(0),
        Reload.NOW,
        "How long the leases of a stream that is not in `streamNames` any more stay after the last write to one of"
        " them. With `uowEnd=watermark` those that are not read to the end stay for good.",
        default=86_400.0,
    )
    coordinator_table: str | None = kcl(
        "coordinatorStateTableName",
        TABLE_NAME,
        Reload.RESTART,
        "Where a fleet of KCL 3.0 to 3.4 keeps its state.",
        default=None,
        otherwise="applicationName-CoordinatorState",
    )
    worker_metrics_table: str | None = kcl(
        "workerMetricsTableName",
        TABLE_NAME,
        Reload.RESTART,
        "Where workers of a fleet of KCL 3.0 to 3.4 report their load.",
        default=None,
        otherwise="applicationName-WorkerMetricStats",
    )
    report_worker_metrics: bool = kcl(
        "disableWorkerMetrics",
        flag(inverted=True),
        Reload.RESTART,
        "Whether this worker reports nothing to a KCL 3.x fleet; the fleet's leader then assigns nothing to it.",
        default=True,
    )
    report_interval: float = kcl(
        "workerMetricsReporterFreqInMillis",
        millis(100, 3_600_000),
        Reload.RESTART,
        "How often a worker in a KCL 3.x fleet reports.",
        default=30.0,
    )
