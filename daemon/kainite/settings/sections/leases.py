"""The section for the lease table, and for this worker among the others of its application."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The lease table and this worker's part in it.

    Attributes:
        application: the application's name.
        table: the lease table's name.
        worker_id: this worker's name, unlike that of every other worker of the application.
        failover: a lease that was not renewed for so long may be taken by another worker, seconds.
        max_leases: most leases that this worker takes; None: no limit.
        cleanup_completed: whether leases of finished shards are deleted.
        assignment_interval: how often this worker looks for leases to take, seconds; None: follows ``failover``.
        steal_at_once: most leases that are taken from a busier worker at a time.
        priority: whether very old leases are taken beyond this worker's share.
        handoff: whether a lease that is assigned to another worker is handed over gracefully.
        handoff_timeout: longest wait for a graceful hand-over, seconds.
        init_backoff: wait before a failed start of the lease work is tried again, seconds.
        deletion_protection, point_in_time_recovery: how the lease table is made.
        coordinator_table: the coordinator state table of KCL 3.0 to 3.4; None: named after the application.
        worker_metrics_table: the worker metrics table of KCL 3.0 to 3.4; None: named after the application.
        report_worker_metrics: whether this worker reports to a KCL 3.x fleet.
        report_interval: how often it reports, seconds.
    """

    application: str
    table: str
    worker_id: str
    failover: float = 10.0
    max_leases: int | None = None
    cleanup_completed: bool = True
    assignment_interval: float | None = None
    steal_at_once: int = 1
    priority: bool = True
    handoff: bool = True
    handoff_timeout: float = 30.0
    init_backoff: float = 1.0
    deletion_protection: bool = False
    point_in_time_recovery: bool = False
    coordinator_table: str | None = None
    worker_metrics_table: str | None = None
    report_worker_metrics: bool = True
    report_interval: float = 30.0
