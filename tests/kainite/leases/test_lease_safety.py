"""Several workers on one table, in any order of renewals, takes, lost answers, pauses, crashes and hand-overs.

Without stealing (which is abrupt, as KCL 2's) no two workers ever believe that they hold one lease, and checkpoints
never move backwards. A pause is a worker that no rule picks; a crash forgets what it held.
"""

from __future__ import annotations

from random import Random
from typing import Any

import boto3
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.liveness import Sighting
from kainite.leases.holding.held_leases import CurrentSettings, HeldLease, HeldLeases
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.taking.choice import TakingLimits, choose, observe_leases
from kainite.observe.meter import SILENT
from kainite.settings import LeaseSettings, StreamSettings
from support.names import unique

FAILOVER = 10.0
NAMES = st.sampled_from(["one", "two", "three"])
CHANCE = st.booleans()


class Worker:
    """One worker's view, with a clock that differs from the others'."""

    def __init__(self, name: str, table: LeaseTable, skew: float) -> None:
        self.name, self.skew, self.now = name, skew, 0.0
        self._table = table
        self.forget()

    def forget(self) -> None:
        using = CurrentSettings(
            LeaseSettings("app", self._table.name, self.name, failover=FAILOVER), StreamSettings("orders"), {}
        )
        self.held_leases = HeldLeases(using, self.clock, SILENT)
        self.seen: dict[str, Sighting[int]] = {}

    def clock(self) -> float:
        return self.now + self.skew

    def believes(self) -> set[str]:
        return {held.shard_id for held in self.held_leases.all if self.held_leases.age(held) < FAILOVER}

    def round(self) -> None:
        leases = self._table.scan()
        self.seen = observe_leases(self.seen, leases, self.clock())
        choice = choose(
            leases, self.seen, self.held_leases.keys, worker=self.name, limits=TakingLimits(FAILOVER, steal_at_once=0),
            now=self.clock(), rng=Random(3), contested=self.held_leases.namesakes(leases),
        )  # fmt: skip
        for lease in choice.take:
            taken = self._table.take(lease, self.name)
            if taken is not None:
                self.held_leases.add(taken, self.clock())

    def write(self, held: HeldLease, checkpoint: Checkpoint | None, lost: bool) -> None:
        """Renews or checkpoints; the answer may get lost."""
        if self.held_leases.age(held) >= FAILOVER:
            self.held_leases.lose(held)
            return
        began, doubtful, held.doubtful = self.clock(), held.doubtful, True
        if checkpoint is None:
            stored = self._table.renew(held.lease, doubtful=doubtful)
        else:
            stored = self._table.checkpoint(held.lease, max(checkpoint, held.checkpoint), doubtful=doubtful)
        if not lost:
            held.doubtful = False
            self.held_leases.record_write(held, stored, began)


class Fleet(RuleBasedStateMachine):
    """Two leases and three workers."""

    dynamodb: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.table = LeaseTable(self.dynamodb, unique("leases"))
        self.table.create()
        for key in ("a", "b"):
            self.table.put_new(Lease(key, checkpoint=TRIM_HORIZON))
        self.stored = {"a": TRIM_HORIZON, "b": TRIM_HORIZON}
        self.under_way: list[Lease] = []
        self.workers = {
            name: Worker(name, self.table, skew) for name, skew in (("one", 0.0), ("two", 1e6), ("three", -1e6))
        }

    @initialize(name=NAMES)
    def begin(self, name: str) -> None:
        self.workers[name].round()

    @rule(seconds=st.sampled_from([1.0, 4.0, 9.0, 11.0, 40.0]))
    def wait(self, seconds: float) -> None:
        for worker in self.workers.values():
            worker.now += seconds

    @rule(name=NAMES)
    def take(self, name: str) -> None:
        self.workers[name].round()

    @rule(name=NAMES, lost=CHANCE)
    def renew(self, name: str, lost: bool) -> None:
        for held in self.workers[name].held_leases.all:
            self.workers[name].write(held, None, lost)

    @rule(name=NAMES, lost=CHANCE, number=st.integers(1, 50))
    def checkpoint(self, name: str, lost: bool, number: int) -> None:
        for held in self.workers[name].held_leases.all:
            self.workers[name].write(held, Checkpoint(str(number)), lost)

    @rule(name=NAMES)
    def crash(self, name: str) -> None:
        self.workers[name].forget()

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        for held in self.workers[name].held_leases.all:
            if self.workers[name].held_leases.begin_release(held):
                self.table.evict(held.lease)
                self.workers[name].held_leases.end_release(held.shard_id)

    @rule(key=st.sampled_from("ab"), name=NAMES)
    def begin_hand_over(self, key: str, name: str) -> None:
        lease = self.table.get(key)
        if lease is not None and lease.owner not in (None, name):
            self.table.handoff(lease, name)

    @rule(name=NAMES)
    def end_hand_over(self, name: str) -> None:
        for held in self.workers[name].held_leases.all:
            if held.hand_over_by is not None and self.workers[name].held_leases.begin_release(held):
                self.table.assign(held.lease, held.lease.owner or "")
                self.workers[name].held_leases.end_release(held.shard_id)

    @rule(name=NAMES)
    def send_the_end_of_a_hand_over(self, name: str) -> None:
        """Ends a hand-over by a call that arrives later; its sender does not wait for it any more."""
        for held in self.workers[name].held_leases.all:
            if held.hand_over_by is not None and self.workers[name].held_leases.begin_release(held):
                self.under_way.append(held.lease)
                self.workers[name].held_leases.end_release(held.shard_id)

    @rule()
    def receive_the_ends_of_hand_overs(self) -> None:
        while self.under_way:
            lease = self.under_way.pop()
            self.table.assign(lease, lease.owner or "")

    @invariant()
    def one_believer(self) -> None:
        for key in ("a", "b"):
            believers = [name for name, worker in self.workers.items() if key in worker.believes()]
            assert len(believers) <= 1, (key, believers)

    @invariant()
    def never_backwards(self) -> None:
        for lease in self.table.scan():
            assert self.stored[lease.key] <= lease.checkpoint
            self.stored[lease.key] = lease.checkpoint


def test_no_two_workers_believe_they_hold_one_lease_and_checkpoints_never_go_back(moto_endpoint: str) -> None:
    Fleet.dynamodb = boto3.client("dynamodb", endpoint_url=moto_endpoint, region_name="us-east-1")
    # Without shrinking: each step costs several calls to a real server, and a failure shows its steps as they were.
    run_state_machine_as_test(
        Fleet,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
