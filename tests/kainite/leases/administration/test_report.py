"""Rows of the lease table: what a counter says, the state of a shard, and the summary."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange
from kainite.leases.administration.report import (
    Lag,
    LeaseRow,
    Pulse,
    ShardState,
    make_rows,
    observe_counters,
    short,
    summary,
    undecided,
    workers,
)
from kainite.leases.table.lease import Lease

FAILOVER = 10.0


def rows(*leases: Lease, now: float = 0.0) -> dict[str, LeaseRow]:
    """Returns the rows of leases whose counters stand still from 0 until ``now``."""
    seen = observe_counters(observe_counters({}, leases, 0.0), leases, now)
    return {row.shard: row for row in make_rows(leases, seen, {}, now, FAILOVER)}


@pytest.mark.parametrize(
    ("now", "pulse"), [(0.0, Pulse.UNKNOWN), (9.9, Pulse.SILENT), (10.0, Pulse.EXPIRED), (99.0, Pulse.EXPIRED)]
)
def test_a_counter_that_stands_still_expires_after_the_failover_time(now: float, pulse: Pulse) -> None:
    row = rows(Lease("s", owner="w"), now=now)["s"]
    assert (row.pulse, row.silent_for) == (pulse, now)


def test_a_counter_that_moved_is_fresh_until_it_has_stood_still_as_long() -> None:
    before, after = Lease("s", owner="w", counter=1), Lease("s", owner="w", counter=2)
    seen = observe_counters(observe_counters({}, [before], 0.0), [after], 4.0)
    assert make_rows([after], seen, {}, 4.0, FAILOVER)[0].pulse is Pulse.FRESH
    assert make_rows([after], observe_counters(seen, [after], 14.0), {}, 14.0, FAILOVER)[0].pulse is Pulse.EXPIRED


def test_only_owned_unfinished_leases_are_waited_for() -> None:
    leases = [Lease("free"), Lease("done", owner="w", checkpoint=SHARD_END), Lease("held", owner="w")]
    seen = observe_counters({}, leases, 0.0)
    assert [lease.key for lease in undecided(leases, seen, 0.0, FAILOVER)] == ["held"]
    assert undecided(leases, seen, FAILOVER, FAILOVER) == []


def test_each_shard_is_in_one_state() -> None:
    found = rows(
        Lease("done", owner="w", checkpoint=SHARD_END),
        Lease("free"),
        Lease("moving", owner="new", checkpoint_owner="old"),
        Lease("parent", owner="w"),
        Lease("child", owner="w", parents=frozenset({"parent"})),
        Lease("orphan", owner="w", parents=frozenset({"gone", "done"})),
    )
    assert {shard: row.state for shard, row in found.items()} == {
        "child": ShardState.WAITING,
        "done": ShardState.FINISHED,
        "free": ShardState.UNOWNED,
        "moving": ShardState.HANDING_OVER,
        "orphan": ShardState.READING,
        "parent": ShardState.READING,
    }
    assert rows(Lease("s", owner="w"), now=FAILOVER)["s"].state is ShardState.EXPIRED


def test_a_row_has_the_share_of_the_hash_keys_and_the_lag() -> None:
    lease = Lease("s", hash_range=HashRange(0, MAX_HASH_KEY // 4), checkpoint=Checkpoint("123", 4))
    row = make_rows([lease], observe_counters({}, [lease], 0.0), {"s": Lag(1500)}, 0.0, FAILOVER)[0]
    assert row.share == pytest.approx(0.25)
    assert (row.checkpoint, row.sub, row.lag_millis, row.pulse) == ("123", 4, 1500, None)
    assert rows(Lease("s"))["s"].share is None


def test_a_long_sequence_number_is_shown_by_its_end() -> None:
    number = "49590338271490256608559692538361571095921575989136588898"
    assert short(Checkpoint(number, 7)) == "…75989136588898.7"
    assert short(Checkpoint("42")) == "42"
    assert [short(one) for one in (LATEST, TRIM_HORIZON, SHARD_END)] == ["LATEST", "TRIM_HORIZON", "SHARD_END"]


def test_the_summary_counts_workers_and_what_nobody_reads() -> None:
    found = tuple(
        rows(
            Lease("a", owner="w1"),
            Lease("b", owner="w1"),
            Lease("c", owner="w2"),
            Lease("d"),
            Lease("e", owner="w9", checkpoint=SHARD_END),
        ).values()
    )
    assert workers(found) == {"w1": 2, "w2": 1}
    assert summary(found) == "5 leases; 2 workers: w1 2, w2 1; 1 unowned; 1 finished"
    assert summary(()) == "0 leases; 0 workers"
