"""The steps of an append and of heartbeats, taken by hand; and the two ways to take them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kainite.base.errors import LogFencedError, LogUnavailableError
from kainite.log.contract import STORE_BACKOFF
from kainite.log.format.entry import Entry, EntryKind, StatusMeta
from kainite.owner.append import PartitionWriter, Pause, Step, Steps, StoreCall, take_steps, take_steps_async
from kainite.owner.mount import Mount, mount
from kainite.store.memory import MemoryStore

LIMIT = 10.0
ENTRIES = (Entry(EntryKind.STATUS, StatusMeta()), Entry(EntryKind.STATUS, StatusMeta()))
LOST = LogUnavailableError("no reply")


class Bench:
    """A writer on a mounted partition in memory, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = MemoryStore()
        self.mount = self.mounted("a")
        self.writer = PartitionWriter(self.store, self.mount, self.mount.first_id, "log", logging.getLogger("test"))

    def mounted(self, owner: str) -> Mount:
        return mount(self.store, "p", owner, 2.0, clock=lambda: self.now)

    def durable(self) -> list[int]:
        return [tid for batch in self.store.read_batches("p", 0) for tid, _ in batch.entries_from(0)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def run(step: Step) -> Any:
    assert isinstance(step, StoreCall)
    return step.run()


def paused(step: Step) -> float:
    assert isinstance(step, Pause)
    return step.seconds


def finish(steps: Steps, result: object) -> None:
    with pytest.raises(StopIteration):
        steps.send(result)


def take_on_a_thread(steps: Steps) -> None:
    take_steps(steps, threading.Event())


def take_on_a_loop(steps: Steps) -> None:
    asyncio.run(take_steps_async(steps))


WAYS = pytest.mark.parametrize("take", [take_on_a_thread, take_on_a_loop])


@WAYS
def test_an_append_is_durable_when_its_steps_end(bench: Bench, take: Callable[[Steps], None]) -> None:
    take(bench.writer.append_steps(ENTRIES))
    take(bench.writer.append_steps(ENTRIES))
    assert bench.durable() == [0, 1, 2, 3]
    assert bench.writer.next_id == 4


def test_a_put_without_an_answer_is_sent_again_and_writes_nothing_twice(bench: Bench) -> None:
    steps = bench.writer.append_steps(ENTRIES)
    put = next(steps)
    run(put)  # the batch is durable, its reply is lost
    pauses = [paused(steps.throw(LOST))]
    for _ in range(5):
        next(steps)
        pauses.append(paused(steps.throw(LOST)))
    assert pauses == [STORE_BACKOFF.after(failures) for failures in range(1, 7)]
    assert bench.writer.next_id == 0
    finish(steps, run(next(steps)))
    assert bench.durable() == [0, 1]
    assert bench.writer.next_id == 2


def test_a_late_answer_is_acknowledged_after_a_renewal_only(bench: Bench) -> None:
    steps = bench.writer.append_steps(ENTRIES)
    answer = run(next(steps))
    bench.now = 5.0  # the lease is over
    renew = steps.send(answer)
    assert bench.writer.next_id == 0
    finish(steps, run(renew))
    assert bench.mount.valid()
    assert bench.mount.head.high_water_mark == 1


def test_a_renewal_without_an_answer_sends_the_same_batch_again(bench: Bench) -> None:
    steps = bench.writer.append_steps(ENTRIES)
    answer = run(next(steps))
    bench.now = 5.0
    steps.send(answer)
    paused(steps.throw(LOST))
    finish(steps, run(steps.send(run(next(steps)))))
    assert bench.durable() == [0, 1]


def test_a_late_answer_under_a_newer_owner_is_not_acknowledged(bench: Bench) -> None:
    steps = bench.writer.append_steps(ENTRIES)
    answer = run(next(steps))
    bench.now = 5.0
    bench.mounted("a")
    renew = steps.send(answer)
    with pytest.raises(LogFencedError) as fenced:
        run(renew)
    with pytest.raises(LogFencedError):
        steps.throw(fenced.value)
    assert bench.writer.next_id == 0


@WAYS
def test_a_slot_in_the_way_fences(bench: Bench, take: Callable[[Steps], None]) -> None:
    bench.mounted("a")
    with pytest.raises(LogFencedError, match=r"from us \(generation 1\) by a \(process .*\) \(generation 2\)"):
        take(bench.writer.append_steps(ENTRIES))
    assert bench.durable() == []


def test_a_store_that_does_not_say_who_fenced_is_asked_again(bench: Bench) -> None:
    bench.mounted("a")
    steps = bench.writer.append_steps(ENTRIES)
    steps.send(run(next(steps)))
    paused(steps.throw(LOST))
    error = run(steps.send(run(next(steps))))
    with pytest.raises(LogFencedError):
        steps.send(error)


def test_heartbeats_follow_the_appends_and_outlive_a_silent_store(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    steps = bench.writer.heartbeat_steps(0.5)
    assert paused(next(steps)) == 0.5
    assert paused(steps.send(run(next(steps)))) == 0.5
    assert bench.mount.head.high_water_mark == -1
    take_on_a_thread(bench.writer.append_steps(ENTRIES))
    next(steps)
    assert paused(steps.throw(LOST)) == 0.5
    next(steps)
    assert paused(steps.throw(LOST)) == 0.5
    assert caplog.messages == ["heartbeat not written"], "once a minute"
    run(next(steps))
    assert bench.mount.head.high_water_mark == 1


def test_a_stop_in_a_pause_raises_the_error_of_an_append_and_ends_heartbeats_silently(bench: Bench) -> None:
    stop = threading.Event()
    stop.set()
    take_steps(bench.writer.heartbeat_steps(LIMIT), stop)

    def silent() -> Steps:
        yield Pause(LIMIT, LOST)

    with pytest.raises(LogUnavailableError, match="no reply"):
        take_steps(silent(), stop)


async def test_a_cancelled_append_takes_no_further_step(bench: Bench) -> None:
    """Covers the renewal that must not follow a release: it would take the mount back."""
    under_way, answered, ended = threading.Event(), threading.Event(), threading.Event()
    append_steps = bench.writer.append_steps(ENTRIES)

    def slow_put() -> Steps:
        put = next(append_steps)

        def run_slowly() -> Any:
            under_way.set()
            assert answered.wait(LIMIT)
            in_way = run(put)
            ended.set()
            return in_way

        append_steps.send((yield StoreCall(run_slowly)))

    append = asyncio.create_task(take_steps_async(slow_put()))
    assert await asyncio.to_thread(under_way.wait, LIMIT)
    append.cancel()
    with pytest.raises(asyncio.CancelledError):
        await append
    bench.mount.release()
    answered.set()
    assert await asyncio.to_thread(ended.wait, LIMIT)
    head = bench.store.read_head("p")
    assert head is not None
    assert head.released
    assert bench.durable() == [0, 1]
    assert bench.writer.next_id == 0


def test_a_heartbeat_brings_the_summary_of_its_moment_and_other_writes_keep_it(bench: Bench) -> None:
    told = iter(["first", "second"])
    writer = PartitionWriter(
        bench.store, bench.mount, bench.mount.first_id, "log", logging.getLogger("test"), summary=lambda: next(told)
    )
    steps = writer.heartbeat_steps(1.0)
    assert paused(next(steps)) == 1.0
    run(next(steps))
    assert bench.mount.head.summary == "first"
    bench.mount.renew(0, 0, 0)
    head = bench.store.read_head("p")
    assert head is not None
    assert head.summary == "first"
    bench.mount.release()
    assert bench.mounted("b").head.summary == "first", "until its first heartbeat the next owner has no other"
