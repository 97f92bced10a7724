"""A lease table of the test's own, and a stream whose shards can be split, merged and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from kainite.kinesis.client import StreamClient
from kainite.leases.keeper import LeaseKeeper
from kainite.leases.stance import Stance
from kainite.leases.streams import only
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.meter import SILENT, Meter
from kainite.settings import LeaseSettings, StreamSettings
from support.keepers import STREAM, Keep
from support.kinesis_double import KinesisDouble, stream_of
from support.lease_commands import double, table

__all__ = ["double", "keep", "stream", "table"]


@pytest.fixture
def stream(double: KinesisDouble) -> Iterator[StreamClient]:
    with stream_of(double) as stream:
        yield stream


@pytest.fixture
def keep(table: LeaseTable, dynamodb: Any, stream: StreamClient) -> Keep:
    def make(
        worker: str = "me",
        failover: float = 60.0,
        limit: int | None = None,
        clock: Callable[[], float] | None = None,
        settings: StreamSettings = STREAM,
        steal: int = 0,
        stance: Stance = Stance.SHARE,
        handoff_timeout: float = 60.0,
        handoff: bool = True,
        meter: Meter = SILENT,
        log: str = "",
    ) -> LeaseKeeper:
        leases = LeaseSettings(
            "app", table.name, worker, failover=failover, max_leases=limit, init_backoff=0.01,
            assignment_interval=0.2, steal_at_once=steal, handoff_timeout=handoff_timeout,
            handoff=handoff,
        )  # fmt: skip
        parts: dict[str, Any] = {"clock": clock} if clock else {}
        leases_of_log = LeaseTable(dynamodb, table.name, log) if log else table
        return LeaseKeeper(
            leases_of_log, only(stream, settings), leases, settings, stance=lambda: stance, meter=meter, rng=Random(7),
            **parts,
        )  # fmt: skip

    return make
