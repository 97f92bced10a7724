"""When the leases of a stream that is read no more are deleted, and when they stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON
from kainite.kinesis.shards import Shard
from kainite.leases.shard_sync.former_streams import FormerStreams
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from support.keepers import Clock

OURS, OTHER = "1:ours:1", "1:other:1"
AFTER = 60.0

Look = Callable[[], bool]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def filled(table: LeaseTable) -> LeaseTable:
    for stream in (OURS, OTHER):
        for number in (0, 1):
            lease = Lease.for_shard(Shard(f"shardId-{number}").within(stream), TRIM_HORIZON)
            table.put_new(replace(lease, checkpoint=SHARD_END) if number else lease)
    return table


def looking(table: LeaseTable, clock: Clock, *, keep_unread: bool = False) -> Look:
    former = FormerStreams(table, keep_unread, clock)
    return lambda: former.clean_up(table.scan(), (OURS,), AFTER)


def streams(table: LeaseTable) -> list[str]:
    return sorted(lease.stream for lease in table.scan())


def test_they_are_deleted_when_nobody_has_written_them_for_the_time(filled: LeaseTable, clock: Clock) -> None:
    look = looking(filled, clock)
    assert not look()
    clock.time += AFTER - 1
    assert not look()
    clock.time += 1
    assert look()
    assert streams(filled) == [OURS, OURS]
    assert not look()


def test_they_stay_while_a_host_still_reads_the_stream(filled: LeaseTable, clock: Clock) -> None:
    look = looking(filled, clock)
    look()
    held: Any = filled.take(next(lease for lease in filled.scan() if lease.stream == OTHER), "with an old file")
    for _ in range(5):
        clock.time += AFTER - 1
        assert not look()
        held = filled.renew(held)
    clock.time += AFTER - 1
    assert not look()
    clock.time += AFTER
    assert look()


def test_what_is_not_read_to_its_end_stays_where_the_watermark_needs_it(filled: LeaseTable, clock: Clock) -> None:
    look = looking(filled, clock, keep_unread=True)
    look()
    clock.time += AFTER
    assert look()
    assert [lease.checkpoint for lease in filled.scan() if lease.stream == OTHER] == [TRIM_HORIZON]


def test_a_lease_that_was_taken_since_the_scan_stays(filled: LeaseTable, clock: Clock) -> None:
    """Holds where the stream is put back at that moment, and where the leader was frozen after its scan."""
    former, scanned = FormerStreams(filled, False, clock), filled.scan()
    former.clean_up(scanned, (OURS,), AFTER)
    lease = next(lease for lease in scanned if lease.stream == OTHER and lease.checkpoint != SHARD_END)
    taken = filled.take(lease, "with the new file")
    clock.time += AFTER
    former.clean_up(scanned, (OURS,), AFTER)
    assert [lease for lease in filled.scan() if lease.stream == OTHER] == [taken]
