"""Looks at a lease table from the command line: whom it belongs to, and whose counters move."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from kainite.aws.clients import client
from kainite.base.liveness import Sighting
from kainite.cli.terminal import stdout
from kainite.kinesis.client import StreamClient
from kainite.leases.administration.lag import measure_lags
from kainite.leases.administration.report import LeaseRow, make_rows, observe_counters, undecided
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import Settings

LOOK_S = 0.25
"""Between two scans while counters are watched."""


def lease_table(settings: Settings) -> LeaseTable:
    return LeaseTable(client("dynamodb", settings.aws), settings.leases.table)


def stream_of(settings: Settings) -> StreamClient:
    return StreamClient(client("kinesis", settings.aws), settings.stream.name, settings.stream.arn)


def observe_until_decided(
    table: LeaseTable, settings: Settings, limit: float, stream: StreamClient | None = None
) -> tuple[tuple[Lease, ...], tuple[LeaseRow, ...]]:
    """The leases, and their rows after their counters were watched until all is clear, or for ``limit`` seconds."""
    scan, now = table.scan(), time.monotonic()
    seen, end = observe_counters({}, scan, now), now + limit
    with stdout().status("watching the leases' counters …"):
        while now < end and undecided(scan, seen, now, settings.leases.failover):
            time.sleep(min(LOOK_S, limit))
            scan, now = table.scan(), time.monotonic()
            seen = observe_counters(seen, scan, now)
    return scan, rows_of(scan, seen, now, settings, stream)


def rows_of(
    scan: Sequence[Lease],
    seen: Mapping[str, Sighting[int]],
    now: float,
    settings: Settings,
    stream: StreamClient | None,
) -> tuple[LeaseRow, ...]:
    lags = measure_lags(stream, scan, settings.stream.initial_timestamp) if stream else {}
    return make_rows(scan, seen, lags, now, settings.leases.failover)
