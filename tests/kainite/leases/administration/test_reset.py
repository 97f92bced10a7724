"""The changes of a reset, and how it takes the lease from a running worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kainite.base.checkpoint import LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.shards import Shard
from kainite.leases.administration.reset import CheckpointChange, apply, parse_position, plan, select
from kainite.leases.administration.seek_to_timestamp import SeekResult
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable

PARENT = Shard("p", open=False)
CHILDREN = (Shard("a", ("p",)), Shard("b", ("p",)))
SHARDS = (*CHILDREN, PARENT)
AT_7 = Checkpoint("7")


def family(parent: Checkpoint = SHARD_END, child: Checkpoint = AT_7) -> tuple[Lease, ...]:
    leases = (Lease.for_shard(PARENT, parent), *(Lease.for_shard(shard, child) for shard in CHILDREN))
    return leases[::-1]


def everywhere(checkpoint: Checkpoint, *, followed: bool = True) -> Callable[[str], SeekResult]:
    return lambda _shard: SeekResult(checkpoint, followed)


def afters(changes: tuple[CheckpointChange, ...]) -> Mapping[str, Checkpoint]:
    return {change.shard.id: change.after for change in changes if change.needed}


def test_everything_is_read_again_parents_first() -> None:
    leases = family()
    changes = plan(leases, leases, SHARDS, everywhere(TRIM_HORIZON), everything=True)
    assert [change.shard.id for change in changes] == ["p", "a", "b"]
    assert afters(changes) == dict.fromkeys("pab", TRIM_HORIZON)


def test_finished_shards_stay_finished_where_nothing_follows() -> None:
    leases = family()
    assert afters(plan(leases, leases, SHARDS, everywhere(LATEST), everything=True)) == dict.fromkeys("ab", LATEST)
    early = plan(leases, leases, SHARDS, everywhere(Checkpoint("5"), followed=False), everything=True)
    assert afters(early) == dict.fromkeys("ab", Checkpoint("5"))


def test_a_finished_shard_whose_lease_is_gone_gets_one_only_when_all_are_meant() -> None:
    children = family()[:2]
    assert "p" in afters(plan(children, children, SHARDS, everywhere(TRIM_HORIZON), everything=True))
    assert "p" not in afters(plan(children, children, SHARDS, everywhere(TRIM_HORIZON), everything=False))
    assert "p" not in afters(plan(children, children, SHARDS, everywhere(LATEST), everything=True))


def test_a_shard_that_the_stream_has_no_more_is_left_alone() -> None:
    leases = family()
    changes = plan(leases, leases, CHILDREN, everywhere(TRIM_HORIZON), everything=True)
    assert sorted(afters(changes)) == ["a", "b"]
    assert "the stream does not list it" in changes[0].note


def test_a_parent_alone_is_reset_with_a_warning_that_its_children_are_ahead() -> None:
    leases = family()
    (change,) = plan(leases, leases[-1:], SHARDS, everywhere(TRIM_HORIZON), everything=False)
    assert change.after == TRIM_HORIZON
    assert "delivered after those of its children a, b" in change.note
    waiting = family(child=TRIM_HORIZON)
    (change,) = plan(waiting, waiting[-1:], SHARDS, everywhere(TRIM_HORIZON), everything=False)
    assert "delivered after" not in change.note


def test_a_place_that_stands_already_is_no_change() -> None:
    leases = family(child=TRIM_HORIZON)
    changes = plan(leases, leases[:2], SHARDS, everywhere(TRIM_HORIZON), everything=False)
    assert [change.needed for change in changes] == [False, False]


def test_shards_are_chosen_by_name() -> None:
    leases = family()
    assert select(leases, (), "t") == leases
    assert [lease.key for lease in select(leases, ("a",), "t")] == ["a"]
    with pytest.raises(LeaseTableError, match="no lease of shard x, y"):
        select(leases, ("y", "a", "x"), "t")
    with pytest.raises(LeaseTableError, match="no leases yet"):
        select((), (), "t")


@pytest.mark.parametrize(
    ("text", "checkpoint"),
    [
        ("TRIM_HORIZON", TRIM_HORIZON),
        ("LATEST", LATEST),
        ("007", AT_7),
        ("49640", Checkpoint("49640")),
        ("7.3", Checkpoint("7", 3)),
    ],
)
def test_positions_are_read(text: str, checkpoint: Checkpoint) -> None:
    assert parse_position(text) == checkpoint


@pytest.mark.parametrize("text", ["", "latest", "SHARD_END", "AT_TIMESTAMP", "-1", "7.", "7.-1", ".3", "7.3.1", "٣"])
def test_other_positions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|sentinel"):
        parse_position(text)


def test_the_holder_loses_the_lease_and_cannot_write_over_the_reset(table: LeaseTable) -> None:
    table.put_new(Lease("s"))
    held = table.take(table.scan()[0], "w")
    assert held is not None
    held = table.checkpoint(held, Checkpoint("9"))
    assert held is not None

    assert [done for _, done in apply(table, [CheckpointChange(Shard("s"), held, AT_7)], force=False)] == [True]

    assert table.renew(held) is None
    assert table.checkpoint(held, Checkpoint("10")) is None
    (stored,) = table.scan()
    assert (stored.checkpoint, stored.owner, stored.switches) == (AT_7, None, 0)


def test_a_lease_that_moved_since_is_left_alone_unless_forced(table: LeaseTable) -> None:
    table.put_new(Lease("s"))
    read = table.scan()[0]
    held = table.take(read, "w")
    assert held is not None
    change = CheckpointChange(Shard("s"), read, AT_7)

    assert [done for _, done in apply(table, [change], force=False)] == [False]
    assert table.renew(held) is not None

    assert [done for _, done in apply(table, [change], force=True)] == [True]
    assert table.scan()[0].checkpoint == AT_7


def test_a_lease_that_was_gone_is_made_again_and_one_that_is_deleted_is_not(table: LeaseTable) -> None:
    gone = CheckpointChange(Shard("x"), Lease("x"), AT_7)
    made = list(apply(table, [CheckpointChange(CHILDREN[0], None, TRIM_HORIZON), gone], force=True))
    assert [done for _, done in made] == [True, False]
    assert table.scan() == (Lease("a", parents=frozenset({"p"})),)
