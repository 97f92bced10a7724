"""What workers and their leader do, step by step; with any faults: test_member_safety.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.fleet.model.records import Command, Duty, Lead, Restart, Subject, Work, Worker, WorkerMessage
from kainite.fleet.model.states import DutyStatus, LeadershipStatus, WorkerStatus
from kainite.fleet.steps.plan import ProgramPhase
from kainite.fleet.store.contract import MOST_CHANGES, FleetCommit, PutRecord
from support.duty_fleet import TIMING, Fate, SimFleet


@pytest.fixture
def fleet() -> SimFleet:
    return SimFleet()


def duties(*names: str) -> tuple[Duty, ...]:
    return tuple(Duty(name, Work(kind="program", command=("true",)), declared=True) for name in names)


def test_one_host_needs_nothing_but_its_settings(fleet: SimFleet) -> None:
    alone = fleet.worker("a", duties("log", "extract"))
    fleet.rounds(6)
    assert fleet.duty("log").status is DutyStatus.RUNNING
    assert fleet.duty("extract").worker == "a"
    assert alone.member.leadership is LeadershipStatus.LEADER


def test_identical_hosts_share_the_duties(fleet: SimFleet) -> None:
    for name in "abc":
        fleet.worker(name, duties("one", "two", "three"))
    fleet.rounds(8)
    assert [len(fleet.running(name)) for name in ("one", "two", "three")] == [1, 1, 1]
    leaders = [worker for worker in fleet.workers if worker.member.leadership is LeadershipStatus.LEADER]
    assert len(leaders) == 1


def test_a_dead_workers_duties_go_on_elsewhere_after_its_silence(fleet: SimFleet) -> None:
    first, _ = fleet.worker("a", duties("d")), fleet.worker("b")
    fleet.rounds(5)
    assert fleet.duty("d").worker == "a"
    first.crash()
    died = fleet.clock.now
    while not fleet.running("d"):
        fleet.rounds(1)
        assert fleet.clock.now - died <= TIMING.silence + 4 * TIMING.ping
    assert fleet.duty("d").worker == "b"
    fleet.rounds(3)
    assert fleet.store.read().workers["a"].status is WorkerStatus.UNLOADED
    assert [event.status for event in fleet.store.history(Subject.WORKER, "a", 2)] == ["unloaded", "dead"]


def test_hosts_that_start_together_share_the_duties_from_the_beginning(fleet: SimFleet) -> None:
    names = ("one", "two", "three")
    fleet.worker("a", duties(*names))
    fleet.rounds(1, TIMING.settle / 2)
    for name in "bc":
        fleet.worker(name, duties(*names))
    fleet.rounds(6)
    assert {fleet.duty(name).worker for name in names} == {"a", "b", "c"}


def test_a_new_leader_comes_within_the_leaders_timeout(fleet: SimFleet) -> None:
    first, second = fleet.worker("a"), fleet.worker("b")
    fleet.rounds(4)
    assert first.member.leadership is LeadershipStatus.LEADER
    first.crash()
    died = fleet.clock.now
    while second.member.leadership is not LeadershipStatus.LEADER:
        fleet.rounds(1, 0.5)
        assert fleet.clock.now - died <= 2 * TIMING.timeout
    lead = fleet.store.read().lead
    assert lead is not None
    assert lead.generation == 2


def test_one_leader_stays(fleet: SimFleet) -> None:
    for name in "abc":
        fleet.worker(name)
    fleet.rounds(30)
    lead = fleet.store.read().lead
    assert lead is not None
    assert lead.generation == 1


def test_a_worker_that_ends_hands_over_at_once(fleet: SimFleet) -> None:
    first, second = fleet.worker("a", duties("d")), fleet.worker("b")
    fleet.rounds(5)
    first.member.closing = True
    fleet.rounds(5, 0.1)
    assert first.member.left
    assert fleet.duty("d").worker == "b"
    assert second.member.leadership is LeadershipStatus.LEADER
    assert fleet.store.read().workers["a"].status in (WorkerStatus.DEAD, WorkerStatus.UNLOADED)


def test_a_worker_that_wakes_stops_its_programs_before_anything_else(fleet: SimFleet) -> None:
    frozen, _ = fleet.worker("a", duties("d")), fleet.worker("b")
    fleet.rounds(5)
    assert frozen.programs
    frozen.begin()  # it has read the table, and stands still
    for _ in range(20):
        fleet.workers[1].look()
        assert len(fleet.running("d")) <= 1
        fleet.begin_all()
        fleet.clock.now += 1
    assert fleet.duty("d").worker == "b"
    frozen.go_on()
    assert frozen.programs == {}
    fleet.rounds(3)
    assert len(fleet.running("d")) == 1
    assert fleet.store.read().workers["a"].status is WorkerStatus.ALIVE


def test_a_leader_that_acts_on_an_old_read_takes_nothing_from_a_worker_that_has_come_back(fleet: SimFleet) -> None:
    leader = fleet.worker("a")
    fleet.rounds(4)
    other = fleet.worker("b")
    fleet.rounds(2)
    fleet.add(Duty("d", Work(affinity=("b",)), goal="b"))
    leader.look()
    assert fleet.duty("d").status is DutyStatus.WAITING
    while fleet.store.read().workers["b"].status is WorkerStatus.ALIVE:
        leader.look()
        fleet.clock.now += 1
    leader.begin()  # it has read that b is dead and d is b's
    other.look()
    other.look()
    assert fleet.store.read().workers["b"].status is WorkerStatus.ALIVE
    assert other.programs == {}
    while leader.go_on():
        pass
    fleet.rounds(4)
    assert len(fleet.running("d")) == 1


def test_a_frozen_leader_writes_nothing_any_more(fleet: SimFleet) -> None:
    leader, other = fleet.worker("a"), fleet.worker("b")
    fleet.rounds(4)
    leader.look()  # it has just renewed its lead
    fleet.add(Duty("d", Work()))
    leader.begin()  # and is about to give the duty out
    while other.member.leadership is not LeadershipStatus.LEADER:
        fleet.clock.now += 1
        other.look()
    before = fleet.store.read()
    assert before.duties["d"].status is DutyStatus.UNASSIGNED
    while leader.go_on():
        pass
    assert fleet.store.read() == before


def test_a_program_of_an_earlier_assignment_ends_before_the_duty_starts_again(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"))
    fleet.rounds(5)
    run, duty = worker.programs["d"].run, fleet.duty("d")
    fleet.change(replace(duty, status=DutyStatus.WAITING, assignment=duty.assignment + 1))
    fleet.rounds(3)
    assert worker.programs["d"].run != run
    assert fleet.duty("d").status is DutyStatus.RUNNING


def test_a_status_is_not_written_over_what_an_operator_wrote_meanwhile(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"))
    fleet.rounds(5)
    worker.programs["d"].phase = ProgramPhase.ENDED
    worker.begin()
    fleet.halt("d")
    while worker.go_on():
        pass
    assert fleet.duty("d").halted
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.STOPPED


def test_an_operators_stop_outlives_every_leader(fleet: SimFleet) -> None:
    for name in "ab":
        fleet.worker(name, duties("d"))
    fleet.rounds(5)
    fleet.halt("d")
    fleet.rounds(3)
    assert fleet.duty("d").status is DutyStatus.STOPPED
    for worker in fleet.living():
        worker.crash()
    fleet.worker("c", duties("d"))
    fleet.rounds(20)
    assert fleet.duty("d").status is DutyStatus.STOPPED
    fleet.unhalt("d")
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.RUNNING


def test_a_duty_stopped_while_its_worker_is_dead_does_not_start_elsewhere(fleet: SimFleet) -> None:
    first, _ = fleet.worker("a", duties("d")), fleet.worker("b")
    fleet.rounds(5)
    first.crash()
    fleet.halt("d")
    fleet.rounds(15)
    assert fleet.duty("d").status is DutyStatus.STOPPED


def test_a_program_that_dies_at_once_is_an_error_after_its_tries(fleet: SimFleet) -> None:
    worker = fleet.worker("a", (Duty("d", Work(tries=3, backoff=1.0)),))
    for _ in range(30):
        fleet.rounds(1)
        if "d" in worker.programs:
            worker.programs["d"].phase = ProgramPhase.ENDED
    duty = fleet.duty("d")
    assert (duty.status, duty.error) == (DutyStatus.ERROR, "status 1")
    fleet.rounds(50)
    assert fleet.duty("d").status is DutyStatus.ERROR
    fleet.unhalt("d")
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.RUNNING


def test_a_program_that_hangs_in_starting_is_killed_and_counts_as_failed(fleet: SimFleet) -> None:
    worker = fleet.worker("a", (Duty("d", Work(start_timeout=5.0, tries=1)),))
    for _ in range(12):
        worker.look()
        fleet.clock.now += 1
    assert fleet.duty("d").status is DutyStatus.ERROR
    assert not fleet.running("d")


def test_a_clean_end_is_the_end_where_the_policy_says_so(fleet: SimFleet) -> None:
    worker = fleet.worker("a", (Duty("d", Work(restart=Restart.ON_FAILURE)),))
    fleet.rounds(6)
    worker.programs["d"].phase, worker.programs["d"].clean = ProgramPhase.ENDED, True
    fleet.rounds(10)
    assert fleet.duty("d").status is DutyStatus.STOPPED


def test_a_move_stops_before_it_starts(fleet: SimFleet) -> None:
    for name in "ab":
        fleet.worker(name, duties("d"))
    fleet.rounds(5)
    source = fleet.duty("d").worker
    goal = "b" if source == "a" else "a"
    fleet.change(replace(fleet.duty("d"), goal=goal))
    for _ in range(8):
        for worker in fleet.living():
            worker.look()
            assert len(fleet.running("d")) <= 1
        fleet.begin_all()
        fleet.clock.now += 1
    duty = fleet.duty("d")
    assert (duty.worker, duty.status, duty.goal) == (goal, DutyStatus.RUNNING, "")


def test_a_move_waits_until_the_program_has_ended_however_fast_the_leader_is(fleet: SimFleet) -> None:
    leader = fleet.worker("a")
    fleet.rounds(4)
    source = fleet.worker("b")
    fleet.rounds(2)
    fleet.add(Duty("d", Work(affinity=("b",))))
    fleet.rounds(3)
    assert fleet.duty("d").worker == "b"
    fleet.change(replace(fleet.duty("d"), goal="a"))
    source.look()
    for _ in range(4):
        leader.look()
        assert len(fleet.running("d")) == 1
    assert fleet.duty("d").worker == "b"
    fleet.rounds(3)
    assert fleet.duty("d").worker == "a"


def test_rebalancing_on_demand_evens_the_load(fleet: SimFleet) -> None:
    fleet.worker("a", duties("one", "two", "three", "four"))
    fleet.rounds(5)
    fleet.worker("b")
    fleet.rounds(10)
    assert {fleet.duty(name).worker for name in ("one", "two", "three", "four")} == {"a"}
    fleet.send("a", Command.REBALANCE)
    fleet.rounds(20)
    held = [fleet.duty(name).worker for name in ("one", "two", "three", "four")]
    assert sorted(held) == ["a", "a", "b", "b"]


def test_messages_are_obeyed_once_in_order_and_then_gone(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"))
    fleet.rounds(5)
    fleet.send("a", Command.DISABLE)
    fleet.send("a", "sing")
    fleet.send("a", Command.ENABLE)
    fleet.send("a", Command.DISABLE)
    fleet.rounds(4)
    picture = fleet.store.read()
    assert picture.workers["a"].status is WorkerStatus.DISABLED
    assert picture.messages == ()
    assert worker.reports == ["unknown message: sing"]
    assert fleet.duty("d").status is DutyStatus.UNASSIGNED
    fleet.send("a", Command.ENABLE)
    fleet.rounds(5)
    assert fleet.duty("d").status is DutyStatus.RUNNING


def test_a_message_to_nobody_expires(fleet: SimFleet) -> None:
    fleet.worker("a")
    fleet.rounds(3)
    fleet.send("nobody", Command.DISABLE)
    fleet.rounds(int(2 * TIMING.message_life) + 5)
    assert fleet.store.read().messages == ()


def test_a_disabled_leader_gives_the_lead_back(fleet: SimFleet) -> None:
    first, second = fleet.worker("a"), fleet.worker("b")
    fleet.rounds(4)
    fleet.send("a", Command.DISABLE)
    fleet.rounds(4)
    assert first.member.leadership is LeadershipStatus.NORMAL
    assert second.member.leadership is LeadershipStatus.LEADER


def test_a_worker_told_to_shut_down_does_so(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"))
    fleet.rounds(5)
    fleet.send("a", Command.SHUT_DOWN)
    fleet.rounds(6)
    assert worker.shut_down
    assert worker.member.left
    assert fleet.duty("d").status is DutyStatus.UNASSIGNED


def test_a_kill_is_a_failure_that_is_started_again(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"))
    fleet.rounds(5)
    run = worker.programs["d"].run
    fleet.send("a", Command.KILL, "d")
    fleet.rounds(6)
    assert worker.programs["d"].run != run
    assert fleet.duty("d").status is DutyStatus.RUNNING


def test_two_workers_of_one_name_do_not_both_run(fleet: SimFleet) -> None:
    fleet.worker("a", duties("d"))
    fleet.rounds(5)
    second = fleet.worker("a", duties("d"))
    fleet.rounds(10)
    assert second.programs == {}
    assert "another worker has this worker's id" in second.reports[0]
    assert len(fleet.running("d")) == 1


def test_a_worker_that_starts_again_takes_its_name_back_after_the_silence(fleet: SimFleet) -> None:
    fleet.worker("a", duties("d")).crash()
    again = fleet.worker("a", duties("d"))
    fleet.rounds(12)
    assert again.programs
    assert fleet.duty("d").belongs_to(fleet.store.read().workers["a"])


def test_a_duty_of_an_unknown_kind_waits_for_a_worker_that_knows_it(fleet: SimFleet) -> None:
    fleet.worker("a")
    fleet.add(Duty("d", Work(kind="later")))
    fleet.rounds(6)
    assert fleet.duty("d").status is DutyStatus.UNASSIGNED
    fleet.worker("b", kinds=("later",))
    fleet.rounds(6)
    assert fleet.duty("d").worker == "b"


def test_a_duty_of_an_unknown_kind_that_was_given_all_the_same_is_given_back(fleet: SimFleet) -> None:
    worker = fleet.worker("a")
    fleet.rounds(3)
    fleet.add(Duty("d", Work(kind="later")).given_to(fleet.store.read().workers[worker.name]))
    fleet.rounds(3)
    assert fleet.duty("d").status is DutyStatus.UNASSIGNED
    assert "no duties of the kind 'later'" in fleet.store.history(Subject.DUTY, "d", 1)[0].why


def test_what_a_later_release_has_made_of_a_duty_or_a_worker_is_left_to_it(fleet: SimFleet) -> None:
    fleet.worker("a", duties("d", "e"))
    fleet.rounds(5)
    picture = fleet.store.read()
    rested = replace(picture.duties["d"], status=DutyStatus.UNKNOWN, extra={"status": "resting"})
    fleet.change(rested)
    other = Worker("later", "1", WorkerStatus.UNKNOWN, extra={"status": "learning"})
    assert fleet.store.commit(FleetCommit((PutRecord(other),)))
    fleet.add(Duty("f", Work()).given_to(other))
    fleet.rounds(3)
    assert fleet.running("d") == []
    duty, learner = fleet.duty("d"), fleet.store.read().workers["later"]
    assert (duty.extra["status"], duty.worker, learner.extra["status"]) == ("resting", "a", "learning")
    assert (fleet.duty("e").status, fleet.duty("f").worker) == (DutyStatus.RUNNING, "later")
    fleet.rounds(10)
    assert fleet.store.read().workers["later"].status is WorkerStatus.UNLOADED
    assert fleet.duty("f").worker == "a"


def test_a_duty_in_error_that_was_to_move_does_not_hold_up_the_others(fleet: SimFleet) -> None:
    fleet.worker("a", duties("one", "two", "three", "four"))
    fleet.rounds(5)
    fleet.worker("b")
    fleet.rounds(2)
    fleet.add(Duty("bad", Work(), DutyStatus.ERROR, goal="b"))
    fleet.send("a", Command.REBALANCE)
    fleet.rounds(20)
    assert sorted(fleet.duty(name).worker for name in ("one", "two", "three", "four")) == ["a", "a", "b", "b"]


def test_changed_declarations_are_taken_when_the_duty_is_free(fleet: SimFleet) -> None:
    fleet.worker("a", duties("d"))
    fleet.rounds(5)
    fleet.workers[0].member.closing = True
    fleet.rounds(3)
    changed = Duty("d", Work(command=("false",)), declared=True)
    fleet.worker("b", (changed,))
    fleet.rounds(8)
    assert fleet.duty("d").work.command == ("false",)


def test_an_unloaded_worker_is_forgotten_after_a_while(fleet: SimFleet) -> None:
    fleet.worker("a").crash()
    fleet.workers[0].dead = False
    fleet.rounds(2)
    fleet.workers[0].crash()
    fleet.worker("b")
    fleet.rounds(12)
    assert fleet.store.read().workers["a"].status is WorkerStatus.UNLOADED
    fleet.rounds(int(TIMING.forget) + 5)
    assert "a" not in fleet.store.read().workers


def test_a_read_that_takes_long_makes_nobody_look_dead(fleet: SimFleet) -> None:
    first, second = fleet.worker("a"), fleet.worker("b")
    fleet.rounds(4)
    second.begin()
    fleet.clock.now += 60
    while second.go_on():
        pass
    first.look()
    second.look()
    workers = fleet.store.read().workers
    assert {worker.status for worker in workers.values()} == {WorkerStatus.ALIVE}
    assert fleet.store.read().lead is not None


def test_dormant_hours_empty_a_worker(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"))
    fleet.rounds(5)
    asleep = True
    worker.member._is_dormant = lambda: asleep  # noqa: SLF001
    fleet.rounds(4)
    assert fleet.store.read().workers["a"].status is WorkerStatus.DISABLED
    assert fleet.duty("d").status is DutyStatus.UNASSIGNED
    asleep = False
    fleet.rounds(6)
    assert fleet.duty("d").status is DutyStatus.RUNNING


def test_a_hundred_duties_on_five_workers(fleet: SimFleet) -> None:
    names = [f"d{number}" for number in range(100)]
    for name in "abcde":
        fleet.worker(name, duties(*names))
    fleet.rounds(5)
    found = fleet.store.read().duties
    held = [found[name] for name in names]
    assert {duty.status for duty in held} == {DutyStatus.RUNNING}
    assert [sum(duty.worker == name for duty in held) for name in "abcde"] == [20] * 5


def test_a_leader_of_no_worker_is_replaced(fleet: SimFleet) -> None:
    assert fleet.store.commit(FleetCommit((PutRecord(Lead("ghost", "1", 7)),)))
    fleet.worker("a")
    fleet.rounds(3)
    lead = fleet.store.read().lead
    assert lead is not None
    assert (lead.worker, lead.generation) == ("a", 8)


@pytest.mark.parametrize(("clean", "status"), [(True, DutyStatus.STOPPED), (False, DutyStatus.ERROR)])
def test_what_has_ended_for_good_is_not_run_again_by_a_move(fleet: SimFleet, clean: bool, status: DutyStatus) -> None:
    once = Duty("d", Work(command=("true",), restart=Restart.NEVER), declared=True)
    first, _ = fleet.worker("a", (once,)), fleet.worker("b")
    fleet.rounds(5)
    program = first.programs["d"]
    program.phase, program.clean = ProgramPhase.ENDED, clean
    fleet.change(replace(fleet.duty("d"), goal="b"))
    fleet.rounds(5)
    assert fleet.duty("d").status is status


def test_a_worker_that_missed_a_leader_does_not_count_the_one_before_as_silent_too_early(fleet: SimFleet) -> None:
    first, second, third = (fleet.worker(name, duties("d") if name == "a" else ()) for name in "abc")
    fleet.rounds(6)
    assert (first.member.leadership, fleet.duty("d").worker) == (LeadershipStatus.LEADER, "a")
    third.look()
    saw = fleet.clock.now
    fleet.clock.now += 0.9
    first.look()  # it renews its lead, and stands still with its program; the third one does not see that
    while second.member.leadership is not LeadershipStatus.LEADER:
        fleet.clock.now += 0.1
        second.look()
    second.member.closing = True
    for _ in range(4):
        second.look()
    assert second.member.left
    while fleet.clock.now < saw + TIMING.silence + TIMING.timeout + TIMING.ping:
        fleet.clock.now += 0.1
        for _ in range(4):
            third.look()
            assert len(fleet.running("d")) <= 1
    assert fleet.duty("d").worker == "c"


def test_a_duty_does_not_start_while_a_write_that_gave_it_back_may_still_come(fleet: SimFleet) -> None:
    worker, other = fleet.worker("z", duties("d", "x")), fleet.worker("b")
    fleet.rounds(1)
    while fleet.duty("x").status is not DutyStatus.WAITING:
        fleet.clock.now += 0.5
        worker.look()
    assert (fleet.duty("x").worker, worker.programs) == ("z", {})
    fleet.send("z", Command.DISABLE)
    fates = iter((Fate.DONE, Fate.DONE, Fate.DONE, Fate.LATE))  # the read, its record, the lead, the duty
    worker.fate = lambda: next(fates, Fate.DONE)
    worker.look()
    fleet.halt("d")
    for _ in range(4):
        other.look()
    assert other.member.leadership is LeadershipStatus.LEADER
    fleet.send("z", Command.ENABLE)
    for _ in range(3):
        worker.look()
    assert worker.programs
    worker.deliver()
    for _ in range(3):
        other.look()
    assert len(fleet.running("x")) == 1


def test_more_messages_than_a_commit_may_have_are_obeyed_one_after_the_other(fleet: SimFleet) -> None:
    fleet.worker("a")
    fleet.rounds(3)
    for number in range(3 * MOST_CHANGES):
        fleet.send("a", Command.ENABLE if number % 2 else Command.DISABLE)
    fleet.send("a", Command.DISABLE)
    fleet.rounds(8, 0.1)
    picture = fleet.store.read()
    assert picture.messages == ()
    assert picture.workers["a"].status is WorkerStatus.DISABLED


def test_a_message_to_a_process_is_not_for_its_successor(fleet: SimFleet) -> None:
    fleet.worker("a", process="old").crash()
    worker = fleet.worker("a", process="new")
    fleet.rounds(12)
    for number, process in enumerate(("old", ""), 1):
        assert fleet.store.commit(
            FleetCommit((PutRecord(WorkerMessage("a", number, Command.SHUT_DOWN, process=process)),))
        )
        fleet.rounds(2)
        assert worker.shut_down is (process == "")


def test_a_worker_whose_first_write_comes_late_knows_it_as_its_own(fleet: SimFleet) -> None:
    worker = fleet.worker("a", duties("d"), process="this one")
    fates = iter((Fate.DONE, Fate.LATE))
    worker.fate = lambda: next(fates, Fate.DONE)
    worker.look()
    worker.begin()
    worker.deliver()
    while worker.go_on():
        pass
    fleet.rounds(6)
    assert worker.reports == []
    assert fleet.running("d")


def test_a_duty_that_fails_again_and_again_does_not_hold_up_the_moves_of_others(fleet: SimFleet) -> None:
    first = fleet.worker("a", duties("one", "two", "three", "four"))
    fleet.rounds(5)
    fleet.worker("b")
    fleet.rounds(2)
    fleet.add(Duty("bad", Work(backoff=500.0, backoff_max=500.0, weight=0.1), goal="a"))
    fleet.rounds(4)
    first.programs["bad"].phase = ProgramPhase.ENDED
    fleet.rounds(2)
    assert (fleet.duty("bad").status, fleet.duty("bad").error) == (DutyStatus.WAITING, "status 1")
    fleet.send("a", Command.REBALANCE)
    fleet.rounds(20)
    assert len({fleet.duty(name).worker for name in ("one", "two", "three", "four")}) == 2
