"""Operations on the fleet, in words, and what they change."""

from __future__ import annotations

import pytest

from kainite.fleet.model.records import Work
from kainite.fleet.operator import Operator
from kainite.operations.duties import change_fleet, kind_and_subject, preview_fleet
from kainite.operations.operation import (
    AddDuty,
    ChangeDuty,
    DutyChange,
    FleetOperation,
    MoveDuty,
    Rebalance,
    RemoveDuty,
    SetDormancy,
    ShutDownWorker,
)
from support.fleet_commands import FleetCommands


@pytest.mark.parametrize(
    ("operation", "asks", "says"),
    [
        (ChangeDuty("d", DutyChange.DISABLE), True, "disable duty d, until it is enabled again"),
        (ChangeDuty("d", DutyChange.STOP), True, "stop duty d, until it is started again"),
        (ChangeDuty("d", DutyChange.START), False, "start duty d"),
        (MoveDuty("d", "b"), True, "stop duty d and start it at b"),
        (SetDormancy("a", dormant=True), True, "give the duties of worker a to others"),
        (SetDormancy("a", dormant=False), False, "let worker a take duties again"),
        (ShutDownWorker("a"), True, "its duties and its shards go to others"),
        (Rebalance(), True, "so that the load is even"),
        (AddDuty("e", Work(command=("true",))), False, "add duty e: true"),
        (RemoveDuty("e"), True, "remove duty e"),
    ],
)
def test_a_preview_names_what_is_done(operation: FleetOperation, asks: bool, says: str) -> None:
    preview = preview_fleet(operation)
    assert (preview.asks, says in preview.does) == (asks, True)


def test_each_change_is_made_and_named(in_memory: FleetCommands) -> None:
    operator = Operator(in_memory.store, "ann", "it loops")
    told = [
        (kind_and_subject(operation)[1], change_fleet(operator, operation, lambda: ()))
        for operation in (
            AddDuty("e", Work(command=("true",))),
            ChangeDuty("e", DutyChange.DISABLE),
            RemoveDuty("e"),
            SetDormancy("a", dormant=True),
            SetDormancy("a", dormant=False),
            Rebalance(),
        )
    ]
    assert told == [
        ("add duty e", "duty e added"),
        ("disable duty e", "duty e disabled"),
        ("remove duty e", "duty e removed"),
        ("disable worker a", "worker a is asked to give its duties away"),
        ("enable worker a", "worker a is asked to take duties again"),
        ("rebalance", "the leader is asked to rebalance"),
    ]
    lines = in_memory("history", "worker", "a", "--json").stdout
    assert "an operator asks it to disable: it loops" in lines
