"""Operations that the log does not carry are recorded before they are carried out, and with their outcome after it."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import FleetUnavailableError, LogError
from kainite.fleet.store.contract import FleetCommit
from kainite.operations.carrying_out import Operations
from kainite.operations.operation import (
    AnyOperation,
    ChangeDuty,
    DutyChange,
    HandOverLog,
    PauseApply,
    ResumeApply,
    SkipNumbers,
)
from kainite.settings import load
from kainite.store.dynamodb import DynamoDBStore
from support.fleet_commands import FleetCommands
from support.log_cli import LogWorld
from support.waiting import until


@pytest.fixture
def operations(log_world: LogWorld, in_memory: FleetCommands) -> Operations:
    """Gives the operations on a log with its owner at work, and a fleet in memory."""
    in_memory.path.write_text(f"{in_memory.path.read_text()}unitsOfWork=true\nlogTableName={log_world.table}\n")
    return Operations(load(in_memory.path, needs=("applicationName",)))


def noted(operations: Operations) -> list[tuple[str, str, str]]:
    return [(one.about, one.result, one.outcome) for one in operations.history()]


async def test_a_change_of_the_fleet_stands_in_both_histories(
    operations: Operations, in_memory: FleetCommands, log_world: LogWorld
) -> None:
    stop, strange = ChangeDuty("d", DutyChange.STOP), ChangeDuty("x", DutyChange.STOP)
    for operation in (stop, strange):
        await asyncio.to_thread(operations.carry_out, operation, "ann", "it loops")
    await until(lambda: not log_world.store.read_requests("0"))
    assert noted(operations) == [
        ("stop duty d", "done", "duty d will be stopped"),
        ("stop duty x", "refused", "there is no duty 'x'; there are: d"),
    ]
    assert [(one.who, one.why) for one in operations.history()] == [("ann", "it loops")] * 2
    assert in_memory.picture().duties["d"].halted
    assert "an operator: stopped: it loops" in in_memory("history", "duty", "d").stdout


async def test_an_operation_of_which_nobody_knows_whether_it_was_done_is_recorded_as_failed(
    operations: Operations, in_memory: FleetCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: FleetCommit) -> bool:
        raise FleetUnavailableError("the fleet's table does not answer")

    monkeypatch.setattr(in_memory.store, "commit", away)
    with pytest.raises(FleetUnavailableError):
        operations.carry_out(ChangeDuty("d", DutyChange.STOP), "ann")
    assert noted(operations) == [("stop duty d", "failed", "the fleet's table does not answer")]


async def test_nothing_is_done_that_cannot_be_recorded(
    operations: Operations, in_memory: FleetCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> str:
        raise LogError("DynamoDB refused a log request")

    monkeypatch.setattr(DynamoDBStore, "put_request", away)
    with pytest.raises(LogError):
        operations.carry_out(ChangeDuty("d", DutyChange.STOP), "ann")
    assert not in_memory.picture().duties["d"].halted


async def test_one_who_is_killed_leaves_a_record_that_says_asked(
    operations: Operations, in_memory: FleetCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: object) -> bool:
        monkeypatch.setattr(DynamoDBStore, "put_request", killed)
        raise KilledError

    monkeypatch.setattr(in_memory.store, "commit", killed)
    with pytest.raises(KilledError):
        operations.carry_out(ChangeDuty("d", DutyChange.STOP), "ann")
    assert noted(operations) == [("stop duty d", "asked", "")]


@pytest.mark.parametrize(
    ("operation", "asks", "says"),
    [
        (PauseApply(), True, "reading stops when the log is full"),
        (ResumeApply(), False, "in the log's order"),
        (HandOverLog(), True, "nothing is lost or repeated"),
        (SkipNumbers(17), True, "numbers up to 17"),
        (ChangeDuty("d", DutyChange.KILL), True, "kill the program of duty d"),
    ],
)
def test_a_preview_names_what_is_done(operation: AnyOperation, asks: bool, says: str, in_memory: FleetCommands) -> None:
    preview = Operations(load(in_memory.path, needs=("applicationName",))).preview(operation)
    assert (preview.asks, says in preview.does) == (asks, True)
