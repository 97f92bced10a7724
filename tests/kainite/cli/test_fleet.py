"""``kainite fleet``, called as from a shell; on daemons that run: tests/end_to_end/test_duties.py."""

from __future__ import annotations

import json

import pytest

from kainite.fleet.model.records import Worker
from kainite.fleet.model.states import WorkerStatus
from kainite.fleet.store.contract import FleetCommit, PutRecord
from support.fleet_commands import FleetCommands


def test_workers_and_duties_are_shown(fleet: FleetCommands) -> None:
    fleet.filled()
    [worker] = json.loads(fleet("workers", "--json").stdout)
    assert (worker["worker"], worker["leads"], worker["duties"], worker["labels"]) == ("a", True, ["d"], ["big"])
    [duty] = json.loads(fleet("duties", "--json").stdout)
    assert (duty["duty"], duty["status"], duty["worker"], duty["wanted"]) == ("d", "waiting", "a", "yes")
    assert "waiting" in fleet("duties").stdout
    assert "alive" in fleet("workers").stdout
    assert fleet("history", "leader").stdout == "none\n"


def test_without_a_table_it_is_said_what_to_do(fleet: FleetCommands) -> None:
    missing = fleet("duties")
    assert missing.exit_code == 1
    assert "a daemon with fleet=true makes it" in str(missing.exception) + missing.output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("add", "x", "--command", "sh -c 'exit"), "is no command line: No closing quotation"),
        (("add", "x", "--command", "true", "--set", "tries=often"), "'tries=often' is not KEY=NUMBER"),
        (("add", "x", "--command", "true", "--set", "colour=1"), "duty 'x': there is no 'colour'"),
        (("add", "x", "--command", "true", "--set", "tries=0"), "tries must be a whole number above 0"),
        (("add", "x y", "--command", "true"), "duty 'x y': a name has up to 100 letters"),
        (("add", "x", "--kind", "log", "--command", "true"), "a command is for programs"),
        (("add", "d", "--command", "true"), "there is a duty 'd' already"),
        (("start", "a"), "there is no duty 'a' (it is a worker's name); there are: d"),
        (("move", "d", "late", "--yes"), "worker 'late' is dead: it is given no duties"),
        (("move", "d", "small", "--yes"), "worker 'small' has no room: a load of 0, a capacity of 0.5"),
        (("move", "d", "a", "--yes"), "duty 'd' is at a already"),
        (("shut-down", "late", "--yes"), "worker 'late' is dead: it would not obey"),
        (("stop", "d"), "say --yes where nobody can be asked"),
        (("history", "duty"), "name the duty"),
        (("history", "leader", "a"), "the leader's history has no name"),
        (("history", "duty", "a"), "there is no duty 'a', and no history of one"),
        (("remove", "d", "--yes"), "duty 'd' is waiting at a: stop it first"),
        (("clear-error", "d"), "duty 'd' is waiting, not in error"),
    ],
)
def test_what_is_wrong_is_said(in_memory: FleetCommands, words: tuple[str, ...], complaint: str) -> None:
    for worker in (Worker("late", "1", WorkerStatus.DEAD), Worker("small", "1", capacity=0.5)):
        assert in_memory.store.commit(FleetCommit((PutRecord(worker),)))
    wrong = in_memory(*words)
    assert wrong.exit_code in (1, 2)
    assert complaint in " ".join((str(wrong.exception) + wrong.output).split())
