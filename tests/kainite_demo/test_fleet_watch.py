"""What the demo sees of its fleet's duties."""

from __future__ import annotations

import orjson
import pytest

from kainite.base.errors import DemoError
from kainite.fleet.model.records import Duty, DutyKind, HistoryLine, Subject, Work
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.store.contract import FleetCommit, PutRecord
from kainite.fleet.store.memory import MemoryFleetStore
from kainite_demo.fleet_watch import FleetWatch


def stored(duty: Duty, *statuses: str) -> MemoryFleetStore:
    store = MemoryFleetStore()
    events = tuple(HistoryLine(Subject.DUTY, duty.name, status, "a", "why", "a") for status in statuses)
    assert store.commit(FleetCommit((PutRecord(duty),), events=events))
    return store


def test_a_duty_that_runs_is_waited_for_no_longer_and_its_starts_are_counted() -> None:
    running = Duty("log", status=DutyStatus.RUNNING, work=Work("log"))
    watch = FleetWatch(stored(running, *2 * (DutyStatus.WAITING, DutyStatus.RUNNING)), (DutyKind.LOG,))
    watch.wait_until_running(0.0)
    assert orjson.loads(orjson.dumps(watch.starts())) == {"log": 2}


def test_a_duty_that_does_not_run_is_named() -> None:
    waiting = stored(Duty("log", status=DutyStatus.WAITING, work=Work("log")))
    with pytest.raises(DemoError, match="duty apply is not ready after 0 s"):
        FleetWatch(waiting, ("apply",)).wait_until_running(0.0)
    broken = stored(Duty("log", status=DutyStatus.ERROR, work=Work("log"), error="no table"))
    with pytest.raises(DemoError, match="duty log failed too often: no table"):
        FleetWatch(broken, ("log",)).wait_until_running(60.0)


def test_without_a_fleet_there_is_nothing_to_wait_for() -> None:
    watch = FleetWatch(MemoryFleetStore(), ())
    watch.wait_until_running(0.0)
    assert watch.starts() == {}
