"""The fleet's figures: which duties count as running, coming or in error, and who counts as alive."""

from __future__ import annotations

from kainite.fleet.fleet_metrics import tell, tell_away
from kainite.fleet.model.records import Duty, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.observe import metric
from kainite.observe.meter import Meter
from support.metric_sums import Sums

GAUGES = (metric.FLEET_WORKERS, metric.DUTIES_RUNNING, metric.DUTIES_WAITING, metric.DUTIES_IN_ERROR)


def told(picture: Picture) -> tuple[float, ...]:
    """Returns the gauges: workers, duties that run, that wait, and that are in error."""
    sums = Sums()
    tell(Meter(sums), picture)
    assert set(sums.seen) == set(GAUGES)
    return tuple(sums.values[gauge] for gauge in GAUGES)


def of(*duties: Duty) -> Picture:
    return Picture(duties={str(number): duty for number, duty in enumerate(duties)})


def duty(status: DutyStatus, *, enabled: bool = True, halted: bool = False) -> Duty:
    return Duty("d", Work(), status, enabled=enabled, halted=halted)


def test_an_empty_fleet_is_told_too() -> None:
    assert told(Picture()) == (0, 0, 0, 0)


def test_duties_count_by_their_status() -> None:
    running, waiting, free = map(duty, (DutyStatus.RUNNING, DutyStatus.WAITING, DutyStatus.UNASSIGNED))
    assert told(of(running, running, waiting, free, duty(DutyStatus.ERROR))) == (0, 2, 2, 1)


def test_what_nobody_wants_to_run_does_not_wait() -> None:
    disabled = duty(DutyStatus.UNASSIGNED, enabled=False)
    halted = duty(DutyStatus.WAITING, halted=True)
    ended = duty(DutyStatus.STOPPED)
    assert told(of(disabled, halted, ended, duty(DutyStatus.UNKNOWN))) == (0, 0, 0, 0)


def test_workers_that_ping_are_alive() -> None:
    workers = {status.value: Worker(status, "", status=status) for status in WorkerStatus}
    gone = {"dead", "unloaded"}
    assert told(Picture(workers=workers))[0] == len(workers.keys() - gone)


def test_a_worker_that_does_not_reach_the_table_sees_nobody_and_keeps_the_duties() -> None:
    sums = Sums()
    tell(Meter(sums), Picture({"w": Worker("w", "")}, {"d": duty(DutyStatus.ERROR)}))
    tell_away(Meter(sums))
    assert [sums.values[gauge] for gauge in GAUGES] == [0, 0, 0, 1]
