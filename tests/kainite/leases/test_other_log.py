"""A worker that collects into another log."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON
from kainite.base.liveness import Sighting
from kainite.leases.other_log import OtherLog, other_log
from kainite.leases.table.collected_into import LogNote
from kainite.leases.table.lease import Lease

FAILOVER, NOW = 10.0, 100.0
OTHERS = LogNote("other", "orders-log/1")


def found(lease: Lease, own: str = "orders-log/0", since: float = NOW - 1.0) -> OtherLog | None:
    return other_log([lease], {lease.key: Sighting(7, since)}, own, "me", FAILOVER, NOW)


@pytest.mark.parametrize("own", ["orders-log/0", "pay-log/1", ""], ids=["partition", "table", "no units of work"])
def test_a_worker_whose_note_names_another_log_is_found(own: str) -> None:
    assert found(Lease("shardId-0", "other", log_note=OTHERS), own) == OtherLog("other", "orders-log/1")


@pytest.mark.parametrize(
    "lease",
    [
        Lease("shardId-0", "other", log_note=LogNote("other", "orders-log/0")),
        Lease("shardId-0", "other"),
        Lease("shardId-0", "java", log_note=OTHERS),
        Lease("shardId-0", None, log_note=OTHERS),
        Lease("shardId-0", "me", log_note=LogNote("me", "orders-log/1")),
        Lease("shardId-0", "other", checkpoint=SHARD_END, log_note=OTHERS),
    ],
    ids=["the same log", "no note", "a note of the owner before", "nobody's", "this worker's own", "finished"],
)
def test_a_lease_that_tells_of_no_other_log(lease: Lease) -> None:
    assert found(lease) is None


def test_a_worker_that_has_stopped_renewing_does_not_count() -> None:
    assert found(Lease("shardId-0", "other", checkpoint=TRIM_HORIZON, log_note=OTHERS), since=NOW - FAILOVER) is None
