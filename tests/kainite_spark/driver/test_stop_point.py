"""The apply job and a comparison at each state of a request: who may be killed when, and what the other one does.

Both sides talk through the real row of a PostgreSQL, or a MariaDB; the apply job's clock is the test's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite.replicate import stop_ledger
from kainite.replicate.stop_ledger import StopState
from kainite.replicate.verify_ledger import VerifyLedger, VerifySession, first_row
from kainite_spark.driver.stop_point import HOLD_S, LEASE_S, StopPoint
from kainite_spark.plan.backlog import Backlog
from kainite_spark.targets.opening import open_stops
from kainite_spark.targets.stop_requests import StopRequests
from support.replicas import LOG
from support.unit_states import unit_state
from support.verify_sessions import KINDS, run, seen, session_of, target_of

GENERATION = 7
POINT = 0x50
"""The units' transactions committed at 0x10, 0x20 and so on, by their transaction ids."""


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """An apply job with units 1 to 9, and a comparison."""

    connection: VerifySession
    requests: StopRequests
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.fence(GENERATION, 1)
        self.ledger = VerifyLedger(self.connection, LOG)
        self.ledger.begin()
        self.job = StopPoint(self.requests, GENERATION, self.clock)
        units = {tid: unit_state(tid, {tid}, set(), uow=f"pg-{tid}-0/{tid}0", tables=("t",)) for tid in range(1, 10)}
        self.backlog = Backlog(units)
        for tid in units:
            self.backlog.add(tid)

    def fence(self, generation: int, micro_batch: int) -> None:
        run(self.connection, "DELETE FROM kainite_fence")
        run(self.connection, "INSERT INTO kainite_fence VALUES (%s, %s, %s)", LOG, generation, micro_batch)

    def look(self, after: float = 1.0) -> None:
        self.clock.now += after
        self.job.look(self.backlog)

    def attended(self, *, position: int | None = POINT) -> None:
        self.ledger.ask()
        self.look()
        assert self.state() == "attended"
        if position is not None:
            assert self.ledger.set_position(position)
            self.look()

    def hold(self, during: Callable[[float], bool]) -> None:
        def close() -> int:
            self.fence(GENERATION, 12)
            return 12

        self.job.hold(self.backlog, close, during)

    def taken(self) -> list[int]:
        """Returns the units that the job selects; they commit nothing."""
        units = self.backlog.take(100, 100).units
        self.job.begins(units)
        return [unit.tid for unit in units]

    def state(self) -> str:
        return str(first_row(self.connection, "SELECT state FROM kainite_verify")[0])

    def seen(self) -> bool:
        """Tells whether a snapshot of now would be one of the point."""
        return seen(self.connection, LOG, self.ledger.request) is not None

    def beat(self) -> None:
        run(self.connection, stop_ledger.BEAT, LOG, self.ledger.request)


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    url = target_of(request.param, request)
    requests = open_stops(url, LOG)
    assert requests is not None
    with session_of(url) as connection:
        yield Scene(connection, requests)
    requests.close()


def test_units_behind_the_point_wait_until_the_comparison_has_its_snapshot(scene: Scene) -> None:
    scene.attended()
    assert scene.taken() == [1, 2, 3, 4]
    scene.backlog.settle([])  # none of them is applied: they wait again
    assert not scene.backlog.at_stop
    scene.backlog.settle([Outcome(tid, UnitStatus.COMMITTED) for tid in scene.taken()])
    assert scene.backlog.at_stop
    visible: list[bool] = []

    def during(_: float) -> bool:
        visible.append(scene.seen())
        scene.ledger.end()
        return False

    scene.hold(during)
    assert visible == [True]
    assert (scene.state(), scene.ledger.held_ms()) == ("over", 0)
    assert scene.taken() == [5, 6, 7, 8, 9]


def at_stop(scene: Scene) -> None:
    """Brings the job to the point; unit 3 is not applied."""
    scene.attended()
    assert scene.taken() == [1, 2, 3, 4]
    scene.backlog.settle([])
    scene.backlog.withdraw(3, "somebody")
    scene.backlog.forget_resolved([1, 2, 4])
    assert scene.taken() == []
    scene.backlog.settle([])
    assert scene.backlog.at_stop


def test_units_that_are_not_applied_are_listed(scene: Scene) -> None:
    at_stop(scene)
    found: list[object] = []

    def during(_: float) -> bool:
        row = seen(scene.connection, LOG, scene.ledger.request)
        assert row is not None
        found.extend((unit.tid, unit.uow, unit.tables, unit.written) for unit in stop_ledger.decoded(row[0]))
        scene.ledger.end()
        return False

    scene.hold(during)
    assert found == [(3, "pg-3-0/30", ("t",), {3})]


def test_a_job_whose_comparison_is_gone_stands_still_for_a_limited_time(scene: Scene) -> None:
    at_stop(scene)

    def during(seconds: float) -> bool:
        scene.clock.now += seconds
        return False

    began = scene.clock.now
    scene.hold(during)
    assert scene.clock.now - began <= HOLD_S + 1
    assert (scene.state(), scene.taken()) == ("over", [5, 6, 7, 8, 9])


def test_a_job_that_is_to_end_does_not_stand_still(scene: Scene) -> None:
    at_stop(scene)
    scene.hold(lambda _: True)
    assert scene.state() == "over"


@pytest.mark.parametrize("position", [None, POINT])
def test_a_request_whose_comparison_is_gone_is_dropped(scene: Scene, position: int | None) -> None:
    scene.attended(position=position)
    scene.look(LEASE_S / 2)
    assert scene.state() == "attended"
    scene.look(LEASE_S / 2 + 1)
    assert (scene.state(), scene.taken()) == ("over", list(range(1, 10)))


def test_a_comparison_that_gives_signs_of_life_is_waited_for(scene: Scene) -> None:
    scene.attended()
    for _ in range(4):
        scene.beat()
        scene.look(LEASE_S - 1)
    assert (scene.state(), scene.taken()) == ("attended", [1, 2, 3, 4])


def test_a_job_that_has_begun_a_unit_behind_the_point_says_so(scene: Scene) -> None:
    scene.attended(position=None)
    assert len(scene.taken()) == 9
    scene.backlog.settle([])
    assert scene.ledger.set_position(POINT)
    scene.look()
    assert scene.state() == "passed"
    assert not scene.ledger.awaits(StopState.STOPPED, 0.0, lambda: None)
    assert len(scene.taken()) == 9


def test_from_a_floor_on_no_unit_is_begun_until_the_point_is_known(scene: Scene) -> None:
    scene.ledger.ask(0x30)
    scene.look()
    assert scene.taken() == [1, 2]
    scene.backlog.settle([Outcome(tid, UnitStatus.COMMITTED) for tid in (1, 2)])
    assert scene.taken() == []
    assert not scene.job.is_reached(scene.backlog)
    assert scene.ledger.set_position(POINT)
    scene.look()
    assert scene.taken() == [3, 4]
    scene.backlog.settle([Outcome(tid, UnitStatus.COMMITTED) for tid in (3, 4)])
    assert scene.job.is_reached(scene.backlog)


def test_units_that_were_begun_before_the_request_do_not_count(scene: Scene) -> None:
    assert len(scene.taken()) == 9
    scene.backlog.settle([])
    scene.attended()
    assert (scene.state(), scene.taken()) == ("attended", [1, 2, 3, 4])


def test_another_apply_job_answers_new_requests_alone(scene: Scene) -> None:
    scene.attended()
    scene.fence(GENERATION + 1, -1)
    other = StopPoint(scene.requests, GENERATION + 1, scene.clock)
    other.look(scene.backlog)
    assert len(scene.taken()) == 9
    assert not scene.ledger.awaits(StopState.STOPPED, 0.0, lambda: None)
    scene.ledger.ask()
    scene.clock.now += 1
    other.look(scene.backlog)
    assert scene.ledger.awaits(StopState.ATTENDED, 0.0, lambda: None)


def test_a_frozen_job_that_wakes_up_at_the_point_is_not_believed(scene: Scene) -> None:
    at_stop(scene)
    visible: list[bool] = []

    def during(_: float) -> bool:
        scene.fence(GENERATION + 1, -1)  # another job has taken over, and applies
        visible.append(scene.seen())
        return True

    scene.hold(during)
    assert visible == [False]


def test_a_stop_is_over_as_soon_as_the_next_micro_batch_has_begun(scene: Scene) -> None:
    at_stop(scene)
    scene.hold(lambda _: True)
    run(scene.connection, "UPDATE kainite_verify SET state = 'stopped'")  # as if the job's last word were lost
    assert scene.seen()
    scene.fence(GENERATION, 13)
    assert not scene.seen()


def test_a_ledger_that_cannot_be_read_stops_no_job(scene: Scene) -> None:
    scene.attended()
    run(scene.connection, "ALTER TABLE kainite_verify DROP COLUMN beat")
    scene.look()
    assert len(scene.taken()) == 9


def test_a_target_without_requests_is_never_asked() -> None:
    job = StopPoint(None, GENERATION)
    backlog = Backlog(dict[int, UnitState]())
    job.look(backlog)
    assert not backlog.at_stop
