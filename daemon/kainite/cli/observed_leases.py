"""Observes a lease table from the command line: who owns the leases, and whether their counters move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kainite.aws.clients import client
from kainite.base.liveness import Sighting
from kainite.cli.terminal import stdout
from kainite.kinesis.named_streams import ReadableShards, clients_of
from kainite.leases.administration.lag import measure_lags
from kainite.leases.administration.report import LeaseRow, make_rows
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.operations.checkpoints import observe
from kainite.settings import Settings


def lease_table(settings: Settings) -> LeaseTable:
    """Returns the application's lease table."""
    return LeaseTable(client("dynamodb", settings.aws), settings.leases.table)


def stream_of(settings: Settings) -> ReadableShards:
    """Returns the shards of the application's stream, or streams."""
    return clients_of(settings)


def observe_until_decided(
    table: LeaseTable, settings: Settings, limit: float, stream: ReadableShards | None = None
) -> tuple[tuple[Lease, ...], tuple[LeaseRow, ...]]:
    """Scans until each owner is known to be alive or dead, or for ``limit`` seconds.

    Returns:
        The leases of the last scan, and their rows.
    """
    with stdout().status("observing the leases' counters …"):
        scan, seen, now = observe(table, settings.leases.failover, limit)
    return scan, rows_of(scan, seen, now, settings, stream)


def rows_of(
    scan: Sequence[Lease],
    seen: Mapping[str, Sighting[int]],
    now: float,
    settings: Settings,
    stream: ReadableShards | None,
) -> tuple[LeaseRow, ...]:
    """Returns the rows of a scan; with ``stream``, lags are measured."""
    lags = measure_lags(stream, scan, settings.stream.initial_timestamp) if stream else {}
    return make_rows(scan, seen, lags, now, settings.leases.failover)
