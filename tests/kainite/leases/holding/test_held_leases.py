"""What one acquisition of a lease measures."""

from __future__ import annotations

import pytest

from kainite.leases.holding.held_leases import HeldLease
from kainite.leases.table.lease import Lease


def test_throughput_is_an_average_in_which_each_time_weighs_half_of_what_was_before() -> None:
    held = HeldLease(Lease("shard"), 0.0)
    held.count_bytes(10 * 1024)
    held.measure(0.0)
    assert held.throughput is None
    for second in (1.0, 2.0):
        held.count_bytes(8 * 1024)
        held.measure(second)
    assert held.throughput == pytest.approx(8.0)
    held.measure(6.0)
    assert held.throughput == pytest.approx(4.0)
