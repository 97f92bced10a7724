"""The cases of KCL's DynamoDBLeaseTaker (docs/kcl.md, *Taking leases*), and simulated fleets that come to rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.liveness import Sighting
from kainite.leases.table.lease import Lease
from kainite.leases.taking.choice import EVER, Choice, TakingLimits, assigned, choose, live_owners, observe_leases

FAILOVER = 10.0
AGED = FAILOVER + 1
ANCIENT = 3 * FAILOVER + 1
USUAL = TakingLimits(FAILOVER)


def chosen(
    *leases: Lease,
    age: float = 0.0,
    ages: dict[str, float] | None = None,
    held: set[str] | None = None,
    limits: TakingLimits = USUAL,
    avoid: set[str] | None = None,
    contested: set[str] | None = None,
) -> Choice:
    seen = {lease.key: Sighting(lease.counter, -(ages or {}).get(lease.key, age)) for lease in leases}
    return choose(
        leases, seen, held or set(), worker="me", limits=limits, now=0.0, rng=Random(1),
        avoid=avoid or (), contested=contested or (),
    )  # fmt: skip


def keys(choice: Choice) -> list[str]:
    return [lease.key for lease in choice.take]


def owned(owner: str | None, names: str) -> list[Lease]:
    return [Lease(name, owner=owner, counter=1) for name in names]


def test_a_counter_that_stands_still_ages_and_one_that_moves_is_new() -> None:
    first = observe_leases({}, [Lease("a", "x", 1), Lease("b", "x", 1)], now=100.0)
    second = observe_leases(first, [Lease("a", "x", 1), Lease("b", "x", 2)], now=105.0)
    assert second == {"a": Sighting(1, 100.0), "b": Sighting(2, 105.0, moved=True)}


def test_a_new_lease_without_an_owner_is_ancient_and_one_given_back_is_not() -> None:
    first = observe_leases({}, [Lease("a"), Lease("b", "x", 1)], now=100.0)
    assert first["a"] == Sighting(0, EVER)
    assert observe_leases(first, [Lease("a"), Lease("b", None, 2)], now=105.0) == {
        "a": Sighting(0, EVER),
        "b": Sighting(2, 105.0, moved=True),
    }


def test_a_worker_alone_takes_everything_at_once() -> None:
    assert set(keys(chosen(*owned(None, "abc"), *owned("me", "de")))) == set("abcde")


def test_anothers_lease_is_taken_when_it_has_expired_and_not_before() -> None:
    lease = Lease("a", owner="other", counter=3)
    assert chosen(lease, Lease("b", "me"), held={"b"}, age=4.0).wait == 6.0
    assert keys(chosen(lease, Lease("b", "me"), held={"b"}, age=4.0)) == []
    assert keys(chosen(lease, Lease("b", "me"), held={"b"}, age=FAILOVER)) == ["a"]


def test_expired_leases_are_taken_up_to_a_part_and_very_old_ones_beyond_it() -> None:
    leases = [*owned("live", "a"), *owned("dead", "bcd")]
    expired = dict.fromkeys("bcd", AGED)
    assert len(chosen(*leases, ages=expired).take) == 2
    assert len(chosen(*leases, ages=dict.fromkeys("bcd", ANCIENT)).take) == 3
    assert (
        len(chosen(*leases, ages=dict.fromkeys("bcd", ANCIENT), limits=TakingLimits(FAILOVER, priority=False)).take)
        == 2
    )
    assert (
        len(chosen(*leases, ages=dict.fromkeys("bcd", ANCIENT), limits=TakingLimits(FAILOVER, max_leases=1)).take) == 1
    )
    assert chosen(*leases, ages=expired).wait == FAILOVER


def test_leases_that_others_should_take_are_looked_at_again_when_they_are_very_old() -> None:
    leases = [*owned("other", "a"), *owned("me", "b"), *owned("dead", "c"), *owned("third", "d")]
    choice = chosen(*leases, ages={"b": 0, "c": AGED + 2}, held={"b"}, limits=TakingLimits(FAILOVER))
    assert keys(choice) == ["c"]
    choice = chosen(*leases, *owned("me", "e"), ages={"c": AGED + 12}, held={"b", "e"})
    assert (keys(choice), choice.wait) == ([], 3 * FAILOVER - AGED - 12)


def test_one_lease_less_than_another_is_balance_and_two_less_is_not() -> None:
    assert keys(chosen(*owned("other", "ab"), *owned("me", "c"), held={"c"})) == []
    assert len(chosen(*owned("other", "abc"), *owned("me", "d"), held={"d"}).take) == 1
    assert chosen(*owned("other", "abc"), *owned("me", "d"), held={"d"}).stealing


def test_nothing_is_stolen_while_leases_have_expired() -> None:
    leases = [*owned("other", "abcd"), *owned("dead", "e")]
    assert keys(chosen(*leases, ages={"e": AGED})) == ["e"]


def test_stealing_is_from_the_most_loaded_and_as_many_as_allowed() -> None:
    leases = [*owned("little", "a"), *owned("much", "bcdefgh")]
    assert len(chosen(*leases).take) == 1
    stolen = chosen(*leases, limits=TakingLimits(FAILOVER, steal_at_once=9)).take
    assert len(stolen) == 3
    assert {lease.owner for lease in stolen} == {"much"}
    assert keys(chosen(*leases, limits=TakingLimits(FAILOVER, steal_at_once=0))) == []


def test_one_who_lacks_two_steals_one_even_from_a_worker_with_just_its_part() -> None:
    leases = [*owned("x", "abc"), *owned("y", "def"), *owned("me", "g")]
    assert len(chosen(*leases, held={"g"}, limits=TakingLimits(FAILOVER, steal_at_once=9)).take) == 1


def test_a_lease_that_was_moved_to_its_owner_is_not_stolen_and_another_one_is() -> None:
    at_once = TakingLimits(FAILOVER, steal_at_once=9)
    there = [replace(lease, moved_to="much") for lease in owned("much", "abc")]
    assert keys(chosen(*there, *owned("much", "d"), limits=at_once)) == ["d"]
    assert keys(chosen(*there, limits=at_once)) == [], "nothing else is left to be stolen"
    (stolen,) = chosen(*there, *owned("little", "de"), limits=at_once).take
    assert stolen.owner == "little", "the most loaded of those from whom something may be stolen"
    gone = [replace(lease, moved_to="elsewhere") for lease in owned("much", "abcd")]
    assert len(chosen(*gone, limits=at_once).take) == 2, "it was moved to another worker, which does not have it"
    assert len(chosen(*there, age=AGED, limits=at_once).take) == 3, "its owner is gone"


def test_finished_leases_are_neither_counted_nor_taken_but_their_owner_is_a_worker() -> None:
    finished = [replace(lease, checkpoint=SHARD_END) for lease in owned("java", "abcd")]
    assert keys(chosen(*finished, age=ANCIENT)) == []
    choice = chosen(*finished, *owned(None, "ef"), ages={"e": 1.0, "f": 1.0})
    assert (choice.counts.leases, choice.counts.workers, len(choice.take)) == (2, 2, 1)


def test_a_lease_that_is_handed_over_is_left_alone_until_it_has_expired() -> None:
    handed = Lease("a", owner="new", checkpoint_owner="old", counter=1)
    unowned = Lease("b", checkpoint_owner="old", counter=1)
    assert keys(chosen(handed, unowned, age=5.0)) == []
    assert set(keys(chosen(handed, unowned, age=ANCIENT))) == {"a", "b"}
    assert keys(chosen(Lease("a", owner="me", checkpoint_owner="old"), age=5.0)) == []


def test_what_is_to_be_avoided_and_what_a_namesake_goes_by_is_not_taken() -> None:
    assert keys(chosen(*owned(None, "a"), *owned("me", "b"), avoid={"a", "b"}, age=ANCIENT)) == []
    assert keys(chosen(*owned("me", "b"), contested={"b"}, age=5.0)) == []
    assert keys(chosen(*owned("me", "b"), contested={"b"}, age=AGED)) == ["b"]


def test_under_a_limit_shards_that_can_be_read_go_first() -> None:
    parent = Lease("p", owner="other", checkpoint=Checkpoint("5"))
    leases = (Lease("a", parents=frozenset("p")), parent, Lease("b"), Lease("c"))
    ages = dict.fromkeys("abc", ANCIENT)
    assert set(keys(chosen(*leases, ages=ages, limits=TakingLimits(FAILOVER, 2)))) == {"b", "c"}
    assert keys(chosen(*leases, ages=ages, limits=TakingLimits(FAILOVER, 2), held={"c"})) == ["b"]
    assert keys(chosen(*leases, ages=ages, limits=TakingLimits(FAILOVER, 1), held={"c", "b"})) == []


def test_a_limit_below_the_part_is_told() -> None:
    choice = chosen(*owned(None, "abcd"), limits=TakingLimits(FAILOVER, 1))
    assert (choice.counts.spillover, len(choice.take)) == (3, 1)


def test_assigned_leases_are_those_in_ones_name_that_nobody_else_checkpoints() -> None:
    leases = [Lease("a", "me"), Lease("b", "me", checkpoint_owner="x"), Lease("c", "x"), Lease("d"), Lease("e", "me")]
    assert keys(assigned(leases, {"e"}, "me")) == ["a"]
    assert keys(assigned(leases, {"e"}, "me", {"a"})) == []


@dataclass
class Worker:
    """One worker of a simulated fleet; its clock is its own."""

    name: str
    skew: float
    limits: TakingLimits
    rng: Random
    held: set[str] = field(default_factory=set)
    seen: dict[str, Sighting[int]] = field(default_factory=dict)

    def renew(self, table: dict[str, Lease]) -> None:
        self.held = {key for key in self.held if table[key].owner == self.name}
        for key in self.held:
            table[key] = replace(table[key], counter=table[key].counter + 1)

    def round(self, table: dict[str, Lease], now: float) -> int:
        now += self.skew
        leases = list(table.values())
        self.seen = observe_leases(self.seen, leases, now)
        choice = choose(
            leases, self.seen, self.held, worker=self.name, limits=self.limits, now=now, rng=self.rng
        )  # fmt: skip
        for lease in choice.take:
            table[lease.key] = replace(lease, owner=self.name, counter=lease.counter + 1)
            self.held.add(lease.key)
        assert self.limits.max_leases is None or len(self.held) <= self.limits.max_leases
        return len(choice.take)


@given(st.data())
@settings(max_examples=60)
def test_any_fleet_comes_to_rest_in_balance_and_leaves_no_dead_workers_lease(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14), "leases")
    table = {f"s{n}": Lease(f"s{n}") for n in range(count)}
    limit = data.draw(st.none() | st.integers(1, 5), "limit")
    names = iter(f"w{n}" for n in range(100))
    fleet: list[Worker] = []

    def join() -> None:
        limits = TakingLimits(
            FAILOVER, limit, data.draw(st.integers(1, 4), "steal"), data.draw(st.booleans(), "priority")
        )
        fleet.append(Worker(next(names), data.draw(st.floats(-1e6, 1e6), "skew"), limits, Random(len(fleet))))

    now = 0.0
    join()
    for _ in range(data.draw(st.integers(0, 25), "turbulent rounds")):
        match data.draw(st.sampled_from(["join", "die", "none", "none"])):
            case "join" if len(fleet) < 6:
                join()
            case "die" if len(fleet) > 1:
                fleet.pop(data.draw(st.integers(0, len(fleet) - 1)))
        now = advance(fleet, table, now, data)
    for _ in range(3 * count + 12):
        now = advance(fleet, table, now, data)
    alive = {worker.name for worker in fleet}
    loads = Counter({worker.name: 0 for worker in fleet})
    loads.update(lease.owner for lease in table.values() if lease.owner in alive)
    room = limit is None or limit * len(fleet) >= count
    assert not room or sum(loads.values()) == count
    assert max(loads.values()) - min(loads.values()) <= 1
    assert all(worker.round(table, now) == 0 for worker in fleet)


def advance(fleet: list[Worker], table: dict[str, Lease], now: float, data: st.DataObject) -> float:
    """Lets all workers renew and then make a round each, in any order, half a failover time later."""
    now += FAILOVER / 2
    for worker in fleet:
        worker.renew(table)
    for worker in data.draw(st.permutations(fleet)):
        worker.renew(table)
        worker.round(table, now)
    return now


def test_owners_of_expired_leases_are_not_alive() -> None:
    leases = [*owned("a", "x"), *owned("b", "y"), *owned(None, "z")]
    seen = {"x": Sighting(1, -5.0), "y": Sighting(1, -AGED), "z": Sighting(1, 0.0)}
    assert live_owners(leases, seen, FAILOVER, 0.0) == {"a"}


@pytest.mark.parametrize("leases", [[], owned("other", "a")])
def test_a_worker_with_nothing_to_take_takes_nothing(leases: list[Lease]) -> None:
    assert keys(chosen(*leases)) == []
