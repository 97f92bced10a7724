from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.leases.checkpoint import SHARD_END, Checkpoint
from kainite.leases.lease import Lease
from kainite.leases.taking import Choice, Seen, choose, observe

FAILOVER = 10.0


def chosen(
    *leases: Lease, seen_at: float = 0.0, now: float = 0.0, held: set[str] | None = None, limit: int | None = None
) -> Choice:
    seen = {lease.key: Seen(lease.counter, seen_at) for lease in leases}
    return choose(leases, seen, held or set(), worker="me", failover=FAILOVER, max_leases=limit, now=now)


def keys(choice: Choice) -> list[str]:
    return [lease.key for lease in choice.take]


def test_a_counter_that_stands_still_ages_and_one_that_moves_is_new() -> None:
    first = observe({}, [Lease("a", counter=1), Lease("b", counter=1)], now=100.0)
    second = observe(first, [Lease("a", counter=1), Lease("b", counter=2)], now=105.0)
    assert second == {"a": Seen(1, 100.0), "b": Seen(2, 105.0)}


def test_unowned_leases_and_ones_own_are_taken_at_once() -> None:
    assert keys(chosen(Lease("a"), Lease("b", owner="me"))) == ["b", "a"]


def test_anothers_lease_is_taken_when_it_has_expired_and_not_before() -> None:
    lease = Lease("a", owner="other", counter=3)
    assert chosen(lease, now=4.0) == Choice((), 6.0)
    assert keys(chosen(lease, now=FAILOVER)) == ["a"]


def test_finished_handed_over_and_held_leases_are_left_alone() -> None:
    finished, handed = Lease("a", checkpoint=SHARD_END), Lease("b", checkpoint_owner="other")
    assert chosen(finished, handed, Lease("c"), held={"c"}) == Choice((), None)


def test_under_a_limit_shards_that_can_be_read_go_first() -> None:
    parent = Lease("p", owner="other", checkpoint=Checkpoint("5"))
    leases = (Lease("a", parents=frozenset("p")), parent, Lease("b"), Lease("c"))
    assert keys(chosen(*leases, limit=2)) == ["b", "c"]
    assert keys(chosen(*leases, limit=2, held={"c"})) == ["b"]
    assert keys(chosen(*leases, limit=1, held={"c", "b"})) == []


@given(
    st.lists(
        st.builds(
            Lease,
            key=st.text("abcdef", min_size=1, max_size=2),
            owner=st.sampled_from([None, "me", "other"]),
            checkpoint=st.sampled_from([Checkpoint("1"), SHARD_END]),
        ),
        unique_by=lambda lease: lease.key,
    ),
    st.floats(0, 30),
    st.none() | st.integers(0, 5),
)
def test_nothing_that_another_may_still_hold_is_ever_taken(leases: list[Lease], now: float, limit: int | None) -> None:
    choice = chosen(*leases, now=now, limit=limit)
    assert limit is None or len(choice.take) <= limit
    for lease in choice.take:
        assert lease.checkpoint != SHARD_END
        assert lease.owner != "other" or now >= FAILOVER
    assert choice.wait is None or 0 < choice.wait <= FAILOVER
