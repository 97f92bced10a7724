"""The loop of one worker: how often it looks, when it ends its programs, and how it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from kainite.base.clock import boot_seconds
from kainite.base.errors import FleetError, FleetUnavailableError
from kainite.fleet.model.records import Command, Duty, Picture, Subject, Work, Worker, WorkerMessage
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.programs.commands import HostCommands
from kainite.fleet.programs.programs import DutyPrograms
from kainite.fleet.service import FleetService
from kainite.fleet.steps.member import FleetMember
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import FleetCommit, PutRecord
from kainite.fleet.store.memory import MemoryFleetStore
from kainite.observe import metric
from kainite.observe.meter import Meter
from support.metric_sums import Sums

SLOW = Timing(ping=0.5, timeout=30.0)
QUICK = Timing(ping=0.1, timeout=1.0)
DUTY = Duty("d", Work(command=("sleep", "1000"), ready_after=0.01, stop_grace=0.2), declared=True)


class Watched(MemoryFleetStore):
    """Notes when it was read, and fails as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[float] = []
        self.failing: Exception | None = None

    def read(self) -> Picture:
        self.reads.append(boot_seconds())
        self._fail()
        return super().read()

    def commit(self, commit: FleetCommit) -> bool:
        self._fail()
        return super().commit(commit)

    def _fail(self) -> None:
        if self.failing is not None:
            raise self.failing


@dataclass
class Running:
    """A worker at its work."""

    store: Watched
    programs: DutyPrograms
    task: asyncio.Task[None] | None = None
    sums: Sums = field(default_factory=Sums)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - nothing else waits for it
                await asyncio.sleep(0.01)

    def status(self, duty: str = "d") -> DutyStatus | None:
        found = self.store._record(f"duty/{duty}") if f"duty/{duty}" in self.store._items else None  # noqa: SLF001
        return found.status if isinstance(found, Duty) else None

    async def end(self) -> None:
        assert self.task is not None
        self.stop.set()
        await self.task


@asynccontextmanager
async def running(
    timing: Timing, *declared: Duty, name: str = "w", store: Watched | None = None
) -> AsyncIterator[Running]:
    news = asyncio.Event()
    commands = HostCommands({duty.name: duty.work for duty in declared}, frozenset(), None)
    world = Running(store or Watched(), DutyPrograms(commands, timing.lease, news.set))
    member = FleetMember(Worker(name, ""), timing, declared)
    service = FleetService(world.store, member, world.programs, timing, news, world.stop.set, Meter(world.sums))
    world.task = asyncio.create_task(service.run(world.stop, grace=1.0))
    try:
        yield world
    finally:
        world.task.cancel()
        with suppress(asyncio.CancelledError, FleetError):
            await world.task


async def test_a_worker_whose_id_another_one_has_does_not_flood_the_table() -> None:
    store = Watched()
    assert store.commit(FleetCommit((PutRecord(Worker("twin", "another's")),)))
    async with running(SLOW, name="twin", store=store) as world:
        await world.until(lambda: len(store.reads) >= 4)
    assert store.reads[3] - store.reads[0] >= 2 * SLOW.ping


async def test_while_the_table_is_away_programs_end_with_the_lease() -> None:
    async with running(QUICK, DUTY) as world:
        await world.until(lambda: world.status() is DutyStatus.RUNNING)
        world.store.failing = FleetUnavailableError("away")
        await world.until(lambda: not world.programs)
        assert world.sums.values[metric.FLEET_WORKERS] == 0
        world.store.failing = None
        await world.until(lambda: world.programs)
        await world.until(lambda: world.status() is DutyStatus.RUNNING)
        await world.until(lambda: world.sums.values[metric.DUTIES_RUNNING] == 1)
        assert world.sums.values[metric.FLEET_WORKERS] == 1


async def test_a_worker_that_ends_gives_everything_back() -> None:
    async with running(QUICK, DUTY) as world:
        await world.until(lambda: world.status() is DutyStatus.RUNNING)
        await world.end()
    picture = world.store.read()
    assert (picture.workers["w"].status, picture.duties["d"].status) == (WorkerStatus.DEAD, DutyStatus.UNASSIGNED)
    assert picture.lead is not None
    assert picture.lead.worker == ""
    assert not world.programs


async def test_a_worker_that_cannot_leave_in_time_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.fleet.service.CLOSING_MARGIN_S", -0.9)
    async with running(QUICK, DUTY) as world:
        await world.until(lambda: world.status() is DutyStatus.RUNNING)
        world.store.failing = FleetUnavailableError("away")
        await world.end()
    assert not world.programs


async def test_a_table_that_refuses_ends_the_worker_and_its_programs() -> None:
    async with running(QUICK, DUTY) as world:
        await world.until(lambda: world.status() is DutyStatus.RUNNING)
        world.store.failing = FleetError("refused")
        assert world.task is not None
        with pytest.raises(FleetError, match="refused"):
            await world.task
        assert not world.programs


async def test_an_operators_message_ends_the_worker() -> None:
    async with running(QUICK, DUTY) as world:
        await world.until(lambda: world.status() is DutyStatus.RUNNING)
        assert world.store.commit(FleetCommit((PutRecord(WorkerMessage("w", 1, Command.SHUT_DOWN)),)))
        assert world.task is not None
        await world.task
    assert world.stop.is_set()
    assert world.store.history(Subject.WORKER, "w", 1)[0].status == "dead"


async def test_what_has_changed_is_looked_at_again_at_once() -> None:
    slow = Timing(ping=20.0, timeout=60.0)
    store = Watched()
    assert store.commit(FleetCommit((PutRecord(Worker("other", "1")),)))
    async with running(slow, store=store) as world:
        await world.until(lambda: store.read().lead is not None)  # it has entered, and claimed the lead
    assert len(store.reads) >= 2
