"""The contract of the coordination table, on each store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kainite.fleet.model.records import Duty, HistoryLine, Lead, Restart, Subject, Work, Worker, WorkerMessage
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.store.contract import (
    MOST_CHANGES,
    CheckRecord,
    DeleteRecord,
    FleetCommit,
    FleetStore,
    PutRecord,
    RecordChange,
)
from support.dynamodb_doubles import on_each_fleet_store

pytestmark = on_each_fleet_store

WORK = Work("program", ("sh", "-c", "exit 1"), "", 2.5, ("a", "b"), Restart.NEVER, "ready", tries=3)
RECORDS = (
    Worker("host/1", "i", WorkerStatus.DISABLED, ("big",), 3.0, ("log", "later"), ("d",), ("sh -c",), "{}", True, 7),
    Duty("d", WORK, DutyStatus.RUNNING, "host/1", "i", 4, False, True, "b", True, "why\nnot"),
    WorkerMessage("host/1", 12, "kill", "d"),
    WorkerMessage("a", 2, "later", ""),
)


def commit(
    store: FleetStore, *changes: RecordChange, led: Lead | None = None, events: tuple[HistoryLine, ...] = ()
) -> bool:
    return store.commit(FleetCommit(changes, led, events))


def lead(store: FleetStore) -> Lead:
    found = store.read().lead
    assert found is not None
    return found


def test_records_are_read_as_they_were_written(store: FleetStore) -> None:
    assert store.read().workers == {}
    for record in RECORDS:
        assert commit(store, PutRecord(record))
    picture = store.read()
    assert picture.lead is None
    assert replace(picture.workers["host/1"], version="") == RECORDS[0]
    assert replace(picture.duties["d"], version="") == RECORDS[1]
    assert [replace(message, version="") for message in picture.messages] == [RECORDS[3], RECORDS[2]]


def test_of_two_writers_of_one_version_one_succeeds(store: FleetStore) -> None:
    assert commit(store, PutRecord(Worker("w", "1")))
    assert not commit(store, PutRecord(Worker("w", "2")))
    seen = store.read().workers["w"]
    assert commit(store, PutRecord(replace(seen, incarnation="3")))
    assert not commit(store, PutRecord(replace(seen, incarnation="4")))
    assert not commit(store, DeleteRecord(seen))
    assert store.read().workers["w"].incarnation == "3"


def test_each_write_moves_the_version(store: FleetStore) -> None:
    versions = set()
    assert commit(store, PutRecord(Worker("w", "1")))
    for _ in range(3):
        seen = store.read().workers["w"]
        versions.add(seen.version)
        assert commit(store, PutRecord(seen))
    assert len(versions) == 3


def test_a_commit_happens_whole_or_not_at_all(store: FleetStore) -> None:
    assert commit(store, PutRecord(Duty("old", Work())))
    event = HistoryLine(Subject.DUTY, "new", "unassigned", "me", "a test")
    assert not commit(store, PutRecord(Duty("new", Work())), PutRecord(Duty("old", Work())), events=(event,))
    assert set(store.read().duties) == {"old"}
    assert store.history(Subject.DUTY, "new", 9) == ()
    old = store.read().duties["old"]
    assert commit(store, PutRecord(Duty("new", Work())), DeleteRecord(old), events=(event,))
    assert set(store.read().duties) == {"new"}
    [line] = store.history(Subject.DUTY, "new", 9)
    assert line.at > 0
    assert replace(line, at=0) == event


def test_a_former_leader_changes_nothing(store: FleetStore) -> None:
    assert commit(store, PutRecord(Lead("a", "1", 1)))
    first = lead(store)
    assert commit(store, PutRecord(Duty("d", Work())), led=first)
    assert commit(store, PutRecord(first))  # the leader renews its lease
    assert commit(store, PutRecord(Duty("e", Work())), led=first)
    assert commit(store, PutRecord(replace(lead(store), worker="b", generation=2)))
    assert not commit(store, PutRecord(Duty("f", Work())), led=first)
    assert commit(store, PutRecord(Duty("f", Work())), led=lead(store))


def test_after_the_lead_was_given_back_nobody_leads(store: FleetStore) -> None:
    assert commit(store, PutRecord(Lead("a", "1", 1)))
    first = lead(store)
    assert commit(store, PutRecord(replace(first, worker="", incarnation="")))
    assert not commit(store, PutRecord(Duty("d", Work())), led=first)
    assert lead(store).generation == 1


def test_a_new_record_must_be_new_in_a_transaction_too(store: FleetStore) -> None:
    assert commit(
        store, PutRecord(Worker("w", "1")), events=(HistoryLine(Subject.WORKER, "w", "alive", "w", "it starts"),)
    )
    assert not commit(
        store, PutRecord(Worker("w", "2")), events=(HistoryLine(Subject.WORKER, "w", "alive", "w", "it starts"),)
    )


def test_many_rivals_for_one_lead_have_one_winner(store: FleetStore) -> None:
    with ThreadPoolExecutor(8) as rivals:
        won = list(rivals.map(lambda name: commit(store, PutRecord(Lead(str(name), "1", 1))), range(8)))
    assert sum(won) == 1
    assert lead(store).worker == str(won.index(True))


def test_a_history_is_read_from_its_end(store: FleetStore) -> None:
    for number in range(5):
        event = HistoryLine(Subject.WORKER, "w", "alive", "me", str(number), at=1_000 + number)
        assert commit(store, PutRecord(Worker(f"w{number}", "1")), events=(event,))
    assert [event.why for event in store.history(Subject.WORKER, "w", 3)] == ["4", "3", "2"]
    assert store.history(Subject.DUTY, "w", 3) == ()


def test_a_table_is_made_once(store: FleetStore) -> None:
    assert commit(store, PutRecord(Worker("w", "1")))
    store.create()
    assert set(store.read().workers) == {"w"}


def test_a_read_of_many_pages_is_whole(store: FleetStore) -> None:
    for number in range(12):
        assert commit(store, PutRecord(Duty(f"d{number}", Work(command=("x" * 100_000,)))))
    assert len(store.read().duties) == 12


def test_a_check_changes_nothing_and_fails_what_it_stands_with(store: FleetStore) -> None:
    assert commit(store, PutRecord(Worker("w", "1")))
    seen = store.read().workers["w"]
    assert commit(store, PutRecord(WorkerMessage("w", 1, "kill")), CheckRecord(seen))
    assert store.read().workers["w"] == seen
    assert commit(store, PutRecord(seen))
    assert not commit(store, PutRecord(WorkerMessage("w", 2, "kill")), CheckRecord(seen))
    assert len(store.read().messages) == 1


def test_a_leaders_commit_may_have_so_many_changes_and_events(store: FleetStore) -> None:
    assert commit(store, PutRecord(Lead("a", "1", 1)))
    duties = [PutRecord(Duty(f"d{number}", Work())) for number in range(MOST_CHANGES - 1)]
    event = HistoryLine(Subject.WORKER, "w", "alive", "w", "it starts")
    assert commit(store, *duties, led=lead(store), events=(event,))
    assert len(store.read().duties) == MOST_CHANGES - 1
