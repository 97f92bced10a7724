"""What the leader writes at a look: one row of the table each, in groups that fit into a transaction."""

from __future__ import annotations

from dataclasses import replace

from kainite.fleet.model.records import Command, Duty, Lead, Picture, Record, Work, Worker, WorkerMessage
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.steps.leading import Leading
from kainite.fleet.steps.observer import FleetLook, Observer
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import MOST_CHANGES, DeleteRecord, FleetCommit, PutRecord

TIMING = Timing(ping=1.0, timeout=2.0, rebalance=50.0, message_life=10.0, forget=100.0)
ME = Worker("me", "1")
OTHER = Worker("other", "1")
LEAD = Lead("me", "1", 7)
WORK = Work(command=("true",))
FREE = Duty("d", WORK)
HELD = Duty("d", WORK, DutyStatus.RUNNING, "other", "1")


def commits(
    picture: Picture,
    *declared: Duty,
    silent_for: float = 0.0,
    now: float = 0.0,
    settled: bool = True,
    leading: Leading | None = None,
) -> list[FleetCommit]:
    observer = Observer(TIMING.timeout)
    for seen in (0.0, silent_for):
        observer.see(FleetLook(picture, seen, seen))
    steps = (leading or Leading(TIMING, declared)).steps(ME, LEAD, picture, observer, now, settled=settled)
    return [step.commit for step in steps if step.commit is not None]


def put(found: list[FleetCommit]) -> list[Record]:
    return [change.record for commit in found for change in commit.changes if isinstance(change, PutRecord)]


def deleted(found: list[FleetCommit]) -> list[Record]:
    return [change.record for commit in found for change in commit.changes if isinstance(change, DeleteRecord)]


def picture(
    *duties: Duty, workers: tuple[Worker, ...] = (ME, OTHER), messages: tuple[WorkerMessage, ...] = ()
) -> Picture:
    return Picture({each.name: each for each in workers}, {each.name: each for each in duties}, LEAD, messages)


def test_a_silent_worker_is_dead_and_never_the_leader_itself() -> None:
    assert put(commits(picture(), silent_for=TIMING.silence - 0.1)) == []
    [dead] = put(commits(picture(), silent_for=TIMING.silence))
    assert dead == replace(OTHER, status=WorkerStatus.DEAD)


def test_a_duty_of_a_worker_that_is_gone_is_nobodys() -> None:
    for workers in ((ME,), (ME, replace(OTHER, status=WorkerStatus.DEAD)), (ME, replace(OTHER, incarnation="2"))):
        found = [each for each in put(commits(picture(HELD, workers=workers), settled=False)) if isinstance(each, Duty)]
        assert found == [replace(HELD, status=DutyStatus.UNASSIGNED, worker="", incarnation="")]
    [stopped] = put(commits(picture(replace(HELD, halted=True), workers=(ME,)), settled=False))
    assert isinstance(stopped, Duty)
    assert stopped.status is DutyStatus.STOPPED


def test_a_dead_worker_without_duties_is_unloaded_and_deleted_after_a_while() -> None:
    dead = replace(OTHER, status=WorkerStatus.DEAD)
    [unloaded] = put(commits(picture(workers=(ME, dead))))
    assert unloaded == replace(dead, status=WorkerStatus.UNLOADED)
    gone = picture(workers=(ME, replace(dead, status=WorkerStatus.UNLOADED)))
    assert deleted(commits(gone, silent_for=TIMING.forget - 1)) == []
    assert deleted(commits(gone, silent_for=TIMING.forget)) == [gone.workers["other"]]


def test_a_message_that_nobody_obeys_is_deleted_after_twice_its_life() -> None:
    message = WorkerMessage("other", 1, Command.KILL, "d")
    unread = picture(workers=(ME,), messages=(message,))
    assert deleted(commits(unread, silent_for=2 * TIMING.message_life - 0.1)) == []
    assert deleted(commits(unread, silent_for=2 * TIMING.message_life)) == [message]


def test_declared_duties_are_made_and_changed_while_they_do_not_run() -> None:
    declared = replace(FREE, declared=True)
    assert put(commits(picture(), declared, settled=False)) == [declared]
    other_work = replace(declared, work=Work(command=("false",)))
    assert put(commits(picture(other_work), declared, settled=False)) == [declared]
    running = replace(HELD, declared=True, work=other_work.work)
    assert put(commits(picture(running), declared, settled=False)) == []
    assert put(commits(picture(replace(other_work, declared=False)), declared, settled=False)) == []


def test_nothing_is_given_out_before_the_leader_has_settled() -> None:
    assert commits(picture(FREE), settled=False) == []
    [given] = put(commits(picture(FREE)))
    assert isinstance(given, Duty)
    assert (given.status, given.assignment) == (DutyStatus.WAITING, 1)


def test_load_that_is_uneven_moves_one_duty_at_a_time_when_it_is_time_or_asked_for() -> None:
    uneven = picture(*(replace(HELD, name=f"d{number}") for number in range(4)))
    leading = Leading(TIMING, ())
    assert commits(uneven, leading=leading) == [], "a new leader does not begin by moving"
    [moved] = put(commits(uneven, leading=leading, now=TIMING.rebalance))
    assert isinstance(moved, Duty)
    assert moved.goal == "me"
    moving = picture(*[moved if each.name == moved.name else each for each in uneven.duties.values()])
    assert put(commits(moving, leading=leading, now=TIMING.rebalance + 1)) == [], "one is on its way"
    leading = Leading(TIMING, ())
    leading.ask_for_rebalancing()
    assert len(put(commits(uneven, leading=leading))) == 1


def test_each_commit_is_the_leaders_and_small_enough_and_has_each_record_once() -> None:
    found = commits(picture(*(replace(FREE, name=f"d{number}") for number in range(20))))
    assert {commit.led for commit in found} == {LEAD}
    assert all(len(commit.changes) + len(commit.events) <= MOST_CHANGES for commit in found)
    names = [record.name for record in put(found) if isinstance(record, Duty)]
    assert sorted(names) == sorted(f"d{number}" for number in range(20))
