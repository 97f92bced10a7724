"""Mounting: two owners whose steps interleave in every way never both get an append acknowledged
that the other does not see, and no id is written twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kainite.base.errors import LogFencedError, LogHeldError
from kainite.base.process_identity import ProcessIdentity, from_text, this_process
from kainite.log.contract import Fork, LogHead, LogStore
from kainite.log.format.entry import Batch
from kainite.owner.mount import LeaseWatch, Mount, mount, mount_steps, new_token
from kainite.store.dynamodb import DynamoDBStore
from kainite.store.memory import MemoryStore
from support.dynamodb_doubles import on_each_double, on_each_store
from support.log_builders import batch

P = "0"
LEASE = 10.0
CHILD = "from kainite.base.process_identity import this_process; print(this_process().as_text(), flush=True); input()"


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def mounted(store: LogStore, owner: str, clock: Callable[[], float]) -> Mount:
    return mount(store, P, owner, LEASE, LeaseWatch(clock), clock)


@on_each_store
class TestOneOwner:
    def test_begins_an_empty_log(self, store: LogStore, clock: FakeClock) -> None:
        mine = mounted(store, "a", clock)
        assert (mine.generation, mine.first_id) == (1, 0)
        assert store.put_batch(P, batch(0, generation=1), "n") is None

    def test_goes_on_behind_the_tail(self, store: LogStore, clock: FakeClock) -> None:
        first = mounted(store, "a", clock)
        store.put_batch(P, batch(0, first.generation, count=3), "n")
        first.release()
        again = mounted(store, "b", clock)
        assert (again.generation, again.first_id) == (2, 3)

    def test_may_mount_again_at_once_after_a_crash(self, store: LogStore, clock: FakeClock) -> None:
        mounted(store, "a", clock)
        assert mounted(store, "a", clock).generation == 2

    def test_marks_survive_and_only_rise(self, store: LogStore, clock: FakeClock) -> None:
        first = mounted(store, "a", clock)
        first.renew(50, 20, 30)
        first.renew(40, 10, 5)
        again = mounted(store, "a", clock)
        head = again.head
        assert (head.high_water_mark, head.low_water_mark, head.snapshot) == (50, 20, 30)


@on_each_store
class TestLease:
    def test_keeps_others_out_until_it_runs_out(self, store: LogStore, clock: FakeClock) -> None:
        mounted(store, "a", clock)
        watch = LeaseWatch(clock)
        with pytest.raises(LogHeldError, match=r"held by a \(process .*\); its lease runs 10\.0 s"):
            mount(store, P, "b", LEASE, watch, clock)
        clock.now += 9.9
        with pytest.raises(LogHeldError):
            mount(store, P, "b", LEASE, watch, clock)
        clock.now += 0.2
        assert mount(store, P, "b", LEASE, watch, clock).generation == 2

    def test_is_measured_from_when_the_watcher_first_saw_it(self, store: LogStore, clock: FakeClock) -> None:
        mounted(store, "a", clock)
        clock.now += 1000
        with pytest.raises(LogHeldError):
            mounted(store, "b", clock)

    def test_a_heartbeat_starts_it_anew(self, store: LogStore, clock: FakeClock) -> None:
        first, watch = mounted(store, "a", clock), LeaseWatch(clock)
        for _ in range(5):
            with pytest.raises(LogHeldError):
                mount(store, P, "b", LEASE, watch, clock)
            clock.now += 8
            first.renew()

    def test_ends_for_the_owner_itself(self, store: LogStore, clock: FakeClock) -> None:
        mine = mounted(store, "a", clock)
        assert mine.valid()
        clock.now += 10.1
        assert not mine.valid()
        mine.renew()
        assert mine.valid()

    def test_released_lets_anybody_in(self, store: LogStore, clock: FakeClock) -> None:
        mine = mounted(store, "a", clock)
        mine.release()
        assert not mine.valid()
        assert mounted(store, "b", clock).generation == 2

    def test_the_overtaken_owner_is_told_by_whom(self, store: LogStore, clock: FakeClock) -> None:
        first = mounted(store, "a", clock)
        first.release()
        mounted(store, "b", clock)
        with pytest.raises(LogFencedError, match=r"taken over .* by b \(process .*\) \(generation 2\)"):
            first.renew()

    def test_a_heartbeat_whose_reply_was_lost_does_not_fence(self, store: LogStore, clock: FakeClock) -> None:
        mine = mounted(store, "a", clock)
        stale = mine.head
        mine.renew()
        mine._head = stale  # noqa: SLF001 - what a lost reply leaves
        mine.renew(7)
        assert mine.head.high_water_mark == 7


def process_on(boot: str, pid: int = 4711, started: int = 99) -> ProcessIdentity:
    return ProcessIdentity(new_token(), "host", boot, "pid:[1] time:[1]", pid, started)


@on_each_store
class TestAnOwnerThatRefusesConnections:
    def test_is_not_waited_for(self, store: LogStore, clock: FakeClock) -> None:
        mine = mount(store, P, "a", LEASE, LeaseWatch(clock), clock, ProcessIdentity("a"), address="10.0.0.7:7070")
        head = store.read_head(P)
        assert head is not None
        assert head.address == "10.0.0.7:7070"
        mine.renew()
        again = store.read_head(P)
        assert again is not None
        assert again.address == "10.0.0.7:7070"
        with pytest.raises(LogHeldError):
            mount(store, P, "b", LEASE, LeaseWatch(clock), clock, ProcessIdentity("b"), gone=head.generation - 1)
        second = mount(store, P, "b", LEASE, LeaseWatch(clock), clock, ProcessIdentity("b"), gone=head.generation)
        assert second.generation == 2


@on_each_store
class TestOneNameOnTwoHosts:
    def test_the_second_waits_for_the_lease(self, store: LogStore, clock: FakeClock) -> None:
        first, second = process_on("boot-1"), process_on("boot-2")
        mine, watch = mount(store, P, "a", LEASE, LeaseWatch(clock), clock, first), LeaseWatch(clock)
        for _ in range(5):
            with pytest.raises(LogHeldError, match=r"held by a \(process 4711 on host\), under our own name"):
                mount(store, P, "a", LEASE, watch, clock, second)
            clock.now += 8
            mine.renew()
        assert watch.has_living_namesake("a")
        assert not watch.has_living_namesake("b")
        clock.now += 0.1
        with pytest.raises(LogHeldError):
            mount(store, P, "a", LEASE, watch, clock, second)
        clock.now += LEASE
        assert mount(store, P, "a", LEASE, watch, clock, second).generation == 2
        with pytest.raises(LogFencedError, match="a daemon goes on as its client"):
            mine.renew()

    def test_a_silent_namesake_is_not_called_alive(self, store: LogStore, clock: FakeClock) -> None:
        mount(store, P, "a", LEASE, LeaseWatch(clock), clock, process_on("boot-1"))
        watch = LeaseWatch(clock)
        for _ in range(2):
            with pytest.raises(LogHeldError):
                mount(store, P, "a", LEASE, watch, clock, process_on("boot-2"))
        assert not watch.has_living_namesake("a")

    def test_a_head_of_the_release_before_waits_for_the_lease(self, store: LogStore, clock: FakeClock) -> None:
        assert store.swap_head(P, LogHead(1, "a", "v", int(LEASE * 1000)), None)
        watch = LeaseWatch(clock)
        with pytest.raises(LogHeldError):
            mount(store, P, "a", LEASE, watch, clock)
        clock.now += LEASE
        assert mount(store, P, "a", LEASE, watch, clock).generation == 2

    def test_a_process_that_is_provably_gone_is_not_waited_for(self, store: LogStore, clock: FakeClock) -> None:
        here = this_process()
        gone = replace(here, token="before", started=here.started - 1)  # the process id was given to another process
        mount(store, P, "a", LEASE, LeaseWatch(clock), clock, gone)
        assert mounted(store, "a", clock).generation == 2

    def test_a_restart_after_a_sigkill_does_not_wait(self, store: LogStore, clock: FakeClock) -> None:
        with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as child:
            assert child.stdout is not None
            killed = from_text(child.stdout.readline().decode())
            mount(store, P, "a", LEASE, LeaseWatch(clock), clock, killed)
            with pytest.raises(LogHeldError):
                mounted(store, "a", clock)
            child.kill()
        assert mounted(store, "a", clock).generation == 2

    def test_a_process_that_lives_on_this_host_is_waited_for(self, store: LogStore, clock: FakeClock) -> None:
        mount(store, P, "a", LEASE, LeaseWatch(clock), clock, replace(this_process(), token="other"))
        with pytest.raises(LogHeldError):
            mounted(store, "a", clock)


@on_each_store
class TestStripes:
    W = "1"

    def mounted(self, store: LogStore, owner: str, clock: FakeClock, stripes: int) -> Mount:
        return mount(store, self.W, owner, LEASE, LeaseWatch(clock), clock, stripes=stripes)

    def test_a_log_in_use_is_spread_by_a_mount_and_stays_so(self, store: LogStore, clock: FakeClock) -> None:
        first = self.mounted(store, "a", clock, 1)
        whole = batch(0, first.generation, count=3)
        store.put_batch(self.W, whole, "n0")
        first.release()
        second = self.mounted(store, "b", clock, 4)
        assert (second.generation, second.first_id) == (2, 3)
        striped = batch(3, second.generation, count=2_000)
        assert store.put_batch(self.W, striped, "n1") is None
        second.release()
        third = self.mounted(store, "c", clock, 1)
        assert third.first_id == 2_003
        last = batch(2_003, third.generation)
        assert store.put_batch(self.W, last, "n2") is None
        assert list(store.read_batches(self.W, 0, strong=True)) == [whole, striped, last]
        tail = store.read_tail(self.W)
        assert tail is not None
        assert tail.fork == Fork(3, 4)

    def test_a_mount_that_died_before_its_fork_or_behind_it_is_overtaken(
        self, store: LogStore, clock: FakeClock
    ) -> None:
        for deaths in range(8):
            dying = mount_steps(store, self.W, "a", LEASE, LeaseWatch(clock), clock, stripes=3)
            with suppress(StopIteration):
                for _ in range(deaths):
                    next(dying)
        mine = self.mounted(store, "a", clock, 3)
        assert mine.first_id == 0
        assert store.put_batch(self.W, batch(0, mine.generation), "n") is None


@on_each_double
def test_a_former_owner_that_does_not_know_of_the_fork_meets_it(dynamodb_store: DynamoDBStore, dynamodb: Any) -> None:
    theirs = DynamoDBStore(dynamodb, dynamodb_store.name)  # another process's
    clock = FakeClock()
    mount(dynamodb_store, P, "a", LEASE, LeaseWatch(clock), clock)
    late, fence = batch(0, 1), partial(dynamodb_store.put_fence, P, 0, 1, "slow")
    second = mount(theirs, P, "a", LEASE, LeaseWatch(clock), clock, stripes=3)
    in_way = dynamodb_store.put_batch(P, late, "late")
    assert in_way is not None
    assert (in_way.generation, in_way.fork) == (second.generation, Fork(0, 3))
    assert fence() is not None
    assert theirs.put_batch(P, batch(0, second.generation), "n") is None
    assert list(dynamodb_store.read_batches(P, 0, strong=True)) == [batch(0, second.generation)]


class Server:
    """An owner whose life is a generator: each ``yield`` is a point at which others may act."""

    def __init__(self, store: LogStore, partition: str, name: str, stripes: int = 1) -> None:
        self.store, self.partition, self.name, self.stripes = store, partition, name, stripes
        self.acknowledged: list[Batch] = []
        self.fenced = False

    def life(self, appends: int) -> Generator[str, None, None]:
        clock = FakeClock()
        try:
            mine = yield from mount_steps(
                self.store, self.partition, "same-owner", LEASE, LeaseWatch(clock), clock, stripes=self.stripes
            )
        except (LogFencedError, LogHeldError):
            self.fenced = True
            return
        next_id = mine.first_id
        for number in range(appends):
            batch_ = batch(next_id, mine.generation, data=f"{self.name}{number}".encode())
            nonce = new_token()
            yield "put"
            in_way = self.store.put_batch(self.partition, batch_, nonce)
            yield "reply lost, put again"
            assert (in_way is None) == (self.store.put_batch(self.partition, batch_, nonce) is None)
            if in_way is not None:
                self.fenced = True
                return
            self.acknowledged.append(batch_)
            next_id = batch_.last_id + 1


def check_history(store: LogStore, partition: str, servers: list[Server]) -> None:
    durable = list(store.read_batches(partition, 0, strong=True))
    acknowledged = [each for server in servers for each in server.acknowledged]
    assert all(each in durable for each in acknowledged), "an acknowledged append is lost"
    assert len(durable) == len(acknowledged), "an append is durable that nobody acknowledged, though none crashed"
    generations = [each.generation for each in durable]
    assert generations == sorted(generations), "generations interleave"
    ids = [tid for each in durable for tid in range(each.first_id, each.last_id + 1)]
    assert ids == list(range(len(ids))), "ids are not dense"


def interleave(store: LogStore, partition: str, schedule: list[int]) -> None:
    servers = [Server(store, partition, name, stripes) for name, stripes in zip("abc", (1, 3, 2), strict=True)]
    lives = [server.life(appends=3) for server in servers]
    running = {0, 1, 2}
    for turn in [*schedule, *[0, 1, 2] * 40]:
        if turn in running and next(lives[turn], None) is None:
            running.discard(turn)
    assert not running
    check_history(store, partition, servers)


SCHEDULES = st.lists(st.integers(0, 2), max_size=60)


@given(SCHEDULES)
@settings(max_examples=400)
def test_interleaved_owners_on_memory(schedule: list[int]) -> None:
    interleave(MemoryStore(), P, schedule)


@on_each_double
@given(SCHEDULES)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_interleaved_owners_on_dynamodb(
    dynamodb_store: DynamoDBStore, partitions: Callable[[], str], schedule: list[int]
) -> None:
    interleave(dynamodb_store, partitions(), schedule)


@given(SCHEDULES, st.integers(0, 20))
@settings(max_examples=200)
def test_owners_that_die_anywhere_leave_a_log_that_goes_on(schedule: list[int], deaths: int) -> None:
    store = MemoryStore()
    servers = [Server(store, P, name, stripes) for name, stripes in zip("abc", (1, 3, 2), strict=True)]
    lives = [server.life(appends=3) for server in servers]
    for turn in schedule[:deaths]:
        next(lives[turn], None)
    survivor = Server(store, P, "survivor")
    for _ in survivor.life(appends=3):
        pass
    assert len(survivor.acknowledged) == 3
    durable = list(store.read_batches(P, 0, strong=True))
    everything = [each for server in [*servers, survivor] for each in server.acknowledged]
    assert [each for each in everything if each not in durable] == []
