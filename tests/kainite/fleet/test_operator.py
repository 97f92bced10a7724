"""What an operator may change, and what he is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kainite.base.errors import FleetError
from kainite.fleet.model.records import Command, Duty, Picture, Subject, Work
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.operator import Operator
from kainite.fleet.store.contract import FleetCommit
from support.duty_fleet import SimFleet

WORK = Work(command=("true",))


@pytest.fixture
def fleet() -> SimFleet:
    made = SimFleet()
    for name in "ab":
        made.worker(name)
    made.rounds(3)
    return made


@pytest.fixture
def operator(fleet: SimFleet) -> Operator:
    return Operator(fleet.store, "me")


def test_a_duty_from_its_beginning_to_its_end(fleet: SimFleet, operator: Operator) -> None:
    operator.add("d", WORK)
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.RUNNING
    with pytest.raises(FleetError, match="stop it first"):
        operator.remove("d", tuple)
    operator.stop("d")
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.STOPPED
    operator.start("d")
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.RUNNING
    operator.disable("d")
    fleet.rounds(4)
    with pytest.raises(FleetError, match="duty 'd' is disabled: enable it"):
        operator.start("d")
    operator.enable("d")
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.RUNNING
    operator.stop("d")
    fleet.rounds(4)
    operator.remove("d", tuple)
    fleet.rounds(4)
    assert fleet.store.read().duties == {}
    whole = fleet.store.history(Subject.DUTY, "d", 99)
    assert (whole[0].status, whole[0].who) == ("removed", "me")
    assert whole[-1].why == "an operator: added"


def test_a_move_goes_to_its_worker(fleet: SimFleet, operator: Operator) -> None:
    operator.add("d", WORK)
    fleet.rounds(4)
    goal = "b" if fleet.duty("d").worker == "a" else "a"
    operator.move("d", goal)
    fleet.rounds(4)
    assert (fleet.duty("d").worker, fleet.duty("d").status) == (goal, DutyStatus.RUNNING)
    with pytest.raises(FleetError, match="already"):
        operator.move("d", goal)


def test_an_error_is_cleared(fleet: SimFleet, operator: Operator) -> None:
    fleet.add(Duty("d", WORK, DutyStatus.ERROR, error="why"))
    operator.clear_error("d")
    fleet.rounds(4)
    assert fleet.duty("d").status is DutyStatus.RUNNING
    with pytest.raises(FleetError, match="not in error"):
        operator.clear_error("d")


def test_a_worker_is_emptied_and_filled_again(fleet: SimFleet, operator: Operator) -> None:
    operator.add("d", WORK)
    fleet.rounds(4)
    worker = fleet.duty("d").worker
    operator.send(worker, Command.DISABLE)
    fleet.rounds(6)
    assert fleet.duty("d").worker not in ("", worker)
    operator.send(worker, Command.ENABLE)
    fleet.rounds(3)
    assert fleet.store.read().workers[worker].status is WorkerStatus.ALIVE


def test_the_leader_is_asked_to_rebalance(fleet: SimFleet, operator: Operator) -> None:
    operator.rebalance()
    [message] = fleet.store.read().messages
    lead = fleet.store.read().lead
    assert lead is not None
    assert (message.worker, message.command) == (lead.worker, Command.REBALANCE)


@pytest.mark.parametrize("command", ["start", "stop", "enable", "disable", "remove", "clear_error", "kill"])
def test_a_duty_that_is_not_there_is_named_beside_those_that_are(
    fleet: SimFleet, operator: Operator, command: str
) -> None:
    operator.add("d", WORK)
    with pytest.raises(FleetError, match="there is no duty 'x'; there are: d"):
        getattr(operator, command)(*(["x", tuple] if command == "remove" else ["x"]))


def test_what_makes_no_sense_is_refused(fleet: SimFleet, operator: Operator) -> None:
    operator.add("d", WORK)
    with pytest.raises(FleetError, match="there is a duty 'd' already"):
        operator.add("d", WORK)
    with pytest.raises(FleetError, match="at no worker"):
        operator.move("d", "a")
    with pytest.raises(FleetError, match="there is no worker 'x'; there are: a, b"):
        operator.send("x", Command.SHUT_DOWN)
    with pytest.raises(FleetError, match="nothing to kill"):
        operator.kill("d")
    fleet.add(Duty("declared", WORK, declared=True))
    with pytest.raises(FleetError, match="declared in the settings"):
        operator.remove("declared", lambda: {"declared"})
    operator.remove("declared", tuple)
    assert "declared" not in fleet.store.read().duties


def test_a_message_is_not_lost_where_another_operators_was_obeyed_meanwhile(fleet: SimFleet) -> None:
    class Slow(Operator):
        """Reads, and stands still until another operator's message has been obeyed."""

        def _change(self, commit: Callable[[Picture], FleetCommit]) -> None:
            def late(picture: Picture) -> FleetCommit:
                made = commit(picture)
                if not others:
                    others.append("one")
                    Operator(fleet.store, "other").send("a", Command.ENABLE)
                    fleet.rounds(2)
                return made

            super()._change(late)

    others: list[str] = []
    Slow(fleet.store, "me").send("a", Command.DISABLE)
    fleet.rounds(2)
    assert fleet.store.read().workers["a"].status is WorkerStatus.DISABLED


def test_a_duty_of_a_status_that_a_later_release_has_is_left_to_that(fleet: SimFleet, operator: Operator) -> None:
    fleet.add(Duty("d", WORK, DutyStatus.UNKNOWN, extra={"status": "resting"}))
    for change in (operator.start, operator.stop, lambda name: operator.remove(name, tuple), operator.clear_error):
        with pytest.raises(FleetError, match="duty 'd' is resting, which this release does not know"):
            change("d")
