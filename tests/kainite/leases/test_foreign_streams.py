"""Streams that other workers read and the settings do not name."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON
from kainite.base.liveness import Sighting
from kainite.leases.foreign_streams import ForeignStream, foreign_streams
from kainite.leases.table.lease import Lease

ORDERS, PAY = "1:orders:1", "1:pay:1"
FAILOVER, NOW = 10.0, 100.0
MOVES = Sighting(7, NOW - 1.0, moved=True)


def found(
    *leases: Lease, before: dict[str, ForeignStream] | None = None, counter: Sighting[int] = MOVES
) -> dict[str, ForeignStream]:
    seen = {lease.key: counter for lease in leases}
    return dict(foreign_streams(before or {}, leases, seen, {ORDERS}, "me", FAILOVER, NOW))


def lease(stream: str, owner: str | None = "other", *, ended: bool = False) -> Lease:
    return Lease(f"{stream}:shardId-0", owner, checkpoint=SHARD_END if ended else TRIM_HORIZON)


def test_a_stream_that_another_worker_renews_is_foreign_since_it_was_seen_first() -> None:
    first = found(lease(ORDERS), lease(PAY))
    assert first == {PAY: ForeignStream("other", NOW)}
    before = {PAY: ForeignStream("earlier", 3.0), "1:gone:1": ForeignStream("other", 1.0)}
    assert found(lease(PAY), before=before) == {PAY: ForeignStream("other", 3.0)}


@pytest.mark.parametrize("mine", [lease(PAY, "me"), lease(PAY, None), lease(PAY, ended=True)])
def test_a_lease_that_nobody_else_reads_by_is_not_foreign(mine: Lease) -> None:
    assert found(mine) == {}


@pytest.mark.parametrize("counter", [Sighting(7, NOW), Sighting(7, NOW - FAILOVER, moved=True)])
def test_a_lease_that_was_not_seen_to_move_shows_no_reader(counter: Sighting[int]) -> None:
    assert found(lease(PAY), counter=counter) == {}
