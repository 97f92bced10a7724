"""The coordination table in memory, beyond the contract of every table (test_contract.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.base.errors import FleetError
from kainite.fleet.model.records import Duty, HistoryLine, Subject, Work, Worker
from kainite.fleet.store.contract import MOST_CHANGES, FleetCommit, PutRecord
from kainite.fleet.store.memory import MemoryFleetStore


def test_a_commit_that_no_table_takes_is_refused() -> None:
    store = MemoryFleetStore()
    duties = tuple(PutRecord(Duty(f"d{number}", Work())) for number in range(MOST_CHANGES))
    event = HistoryLine(Subject.DUTY, "d0", "unassigned", "me", "a test")
    with pytest.raises(FleetError, match=f"{MOST_CHANGES + 1} changes and events"):
        store.commit(FleetCommit(duties, events=(event,)))
    assert store.read().duties == {}


def test_what_was_read_does_not_change_with_what_is_written_later() -> None:
    store = MemoryFleetStore()
    store.commit(FleetCommit((PutRecord(Worker("w", "1")),)))
    before = store.read()
    store.commit(FleetCommit((PutRecord(replace(before.workers["w"], incarnation="2")),)))
    assert before.workers["w"].incarnation == "1"
    assert store.read().workers["w"].incarnation == "2"


def test_an_event_has_the_time_of_its_writer_or_of_the_table() -> None:
    store = MemoryFleetStore()
    line = HistoryLine(Subject.WORKER, "w", "alive", "w", "it has started", at=7)
    store.commit(FleetCommit((), events=(line, replace(line, at=0))))
    later, earlier = store.history(Subject.WORKER, "w", 9)
    assert earlier == line
    assert later.at > 7
