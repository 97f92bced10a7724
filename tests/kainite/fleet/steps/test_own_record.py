"""What a worker does about its own record: it enters, obeys, pings, leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.fleet.model.records import Command, Picture, Worker, WorkerMessage
from kainite.fleet.model.states import WorkerStatus
from kainite.fleet.steps.observer import FleetLook, Observer
from kainite.fleet.steps.own_record import MOST_MESSAGES, Obeyed, entering, leaving, obeyed, ping
from kainite.fleet.steps.plan import KillAll, KillProgram, Notice, PlanStep, ShutDown
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import MOST_CHANGES

TIMING = Timing(ping=1.0, timeout=2.0, message_life=10.0)
FRESH = Worker("w", "mine", process="p1")


def seen(picture: Picture, silent_for: float = 0.0) -> Observer:
    observer = Observer(TIMING.timeout)
    for now in (0.0, silent_for):
        observer.see(FleetLook(picture, now, now))
    return observer


def enter(stands: Worker | None, silent_for: float = 0.0, *, gone: bool = False) -> PlanStep | None:
    picture = Picture({"w": stands} if stands else {})
    return entering(FRESH, "new", picture, seen(picture, silent_for), TIMING, lambda _: gone)


def written(step: PlanStep | None) -> Worker:
    assert step is not None
    assert step.commit is not None
    record = step.commit.changes[0].record
    assert isinstance(record, Worker)
    return record


class TestEntering:
    def test_a_worker_without_a_record_makes_one(self) -> None:
        step = enter(None)
        assert written(step) == replace(FRESH, incarnation="new")
        assert step is not None
        assert (step.before, step.pings) == ((KillAll(),), True)

    def test_one_that_is_there_goes_on(self) -> None:
        assert enter(FRESH) is None

    @pytest.mark.parametrize("status", [WorkerStatus.DEAD, WorkerStatus.UNLOADED])
    def test_one_that_was_taken_for_dead_comes_back_as_another(self, status: WorkerStatus) -> None:
        back = written(enter(replace(FRESH, status=status, version="v")))
        assert (back.status, back.incarnation, back.version) == (WorkerStatus.ALIVE, "new", "v")

    def test_a_living_namesake_is_left_alone_and_told(self) -> None:
        step = enter(Worker("w", "other", process="p2"), silent_for=TIMING.silence - 0.1)
        assert step is not None
        assert (step.commit, step.idle) == (None, True)
        assert [type(order) for order in step.before] == [KillAll, Notice]

    @pytest.mark.parametrize(
        ("stands", "silent_for", "gone"),
        [
            (Worker("w", "other", process="p2"), TIMING.silence, False),
            (Worker("w", "other", process="p2"), 0.0, True),
            (Worker("w", "before", process="p1"), 0.0, False),
            (Worker("w", "other", WorkerStatus.DEAD, process="p2"), 0.0, False),
        ],
        ids=["silent", "gone", "its own late write", "dead"],
    )
    def test_a_record_of_a_process_that_has_ended_is_taken_over(
        self, stands: Worker, silent_for: float, gone: bool
    ) -> None:
        taken = written(enter(replace(stands, held_off=True, read=7, version="v"), silent_for, gone=gone))
        assert taken == replace(FRESH, incarnation="new", held_off=True, read=7, version="v")


class TestObeying:
    def obey(self, *messages: WorkerMessage, me: Worker = FRESH, age: float = 0.0) -> Obeyed:
        picture = Picture({"w": me}, messages=messages)
        return obeyed(me, picture, seen(picture, age), TIMING)

    def test_each_command_has_its_effect_once(self) -> None:
        found = self.obey(
            WorkerMessage("w", 1, Command.DISABLE),
            WorkerMessage("w", 2, Command.KILL, "d"),
            WorkerMessage("other", 3, Command.SHUT_DOWN),
            WorkerMessage("w", 4, Command.REBALANCE),
            WorkerMessage("w", 5, Command.SHUT_DOWN),
            WorkerMessage("w", 6, "dance"),
        )
        assert [type(order) for order in found.orders] == [KillProgram, ShutDown, Notice]
        assert (found.me.held_off, found.me.read, found.rebalance, len(found.messages)) == (True, 6, True, 5)
        again = self.obey(*found.messages, me=found.me)
        assert (again.orders, again.me, again.rebalance) == ((), found.me, False)

    def test_what_has_expired_or_is_another_process_s_is_read_and_not_obeyed(self) -> None:
        expired = self.obey(WorkerMessage("w", 1, Command.SHUT_DOWN), age=TIMING.message_life)
        strange = self.obey(WorkerMessage("w", 1, Command.SHUT_DOWN, process="p0"))
        for found in (expired, strange):
            assert (found.orders, found.me.read, len(found.messages)) == ((), 1, 1)

    def test_messages_of_one_look_fit_into_one_commit(self) -> None:
        found = self.obey(*(WorkerMessage("w", number, Command.ENABLE) for number in range(1, 30)))
        step = ping(FRESH, found, dormant=False, closing=False, due=False)
        assert step is not None
        assert step.commit is not None
        assert len(found.messages) == MOST_MESSAGES
        assert len(step.commit.changes) + len(step.commit.events) <= MOST_CHANGES


class TestPinging:
    def test_nothing_is_written_before_it_is_due(self) -> None:
        assert ping(FRESH, Obeyed(FRESH), dormant=False, closing=False, due=False) is None

    def test_a_ping_alone_is_idle_and_has_no_history(self) -> None:
        step = ping(FRESH, Obeyed(FRESH), dormant=False, closing=False, due=True)
        assert step is not None
        assert step.commit is not None
        assert (written(step), step.pings, step.idle, step.commit.events) == (FRESH, True, True, ())

    @pytest.mark.parametrize(
        ("me", "dormant", "closing", "status"),
        [
            (replace(FRESH, held_off=True), False, False, WorkerStatus.DISABLED),
            (FRESH, True, False, WorkerStatus.DISABLED),
            (FRESH, True, True, WorkerStatus.CLOSING),
        ],
        ids=["an operator's wish", "its hours", "it ends"],
    )
    def test_its_status_follows_from_what_it_should_be(
        self, me: Worker, dormant: bool, closing: bool, status: WorkerStatus, request: pytest.FixtureRequest
    ) -> None:
        step = ping(FRESH, Obeyed(me), dormant=dormant, closing=closing, due=False)
        assert step is not None
        assert step.commit is not None
        [event] = step.commit.events
        assert (written(step).status, step.idle) == (status, False)
        assert event.why == request.node.callspec.id

    def test_the_last_write_says_that_it_has_ended(self) -> None:
        closing = replace(FRESH, status=WorkerStatus.CLOSING)
        assert written(leaving(closing)).status is WorkerStatus.DEAD
