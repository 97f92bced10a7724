"""What ``kainite fleet`` changes, and what it asks first."""

from __future__ import annotations

import json

from kainite.fleet.model.records import Duty, Restart, Work
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.store.contract import FleetCommit, PutRecord
from support.fleet_commands import FleetCommands


def test_a_duty_is_added_as_it_is_described(fleet: FleetCommands) -> None:
    fleet.filled()
    words = ["--command", "sh -c 'exit 1'", "--restart", "on-failure", "--weight", "2", "--affinity", "big"]
    added = fleet("add", "report", *words, "--ready", "up")
    assert added.stdout == "duty report added\n"
    work = fleet.picture().duties["report"].work
    assert (work.command, work.restart, work.weight) == (("sh", "-c", "exit 1"), Restart.ON_FAILURE, 2.0)
    assert (work.affinity, work.ready) == (("big",), "up")
    assert fleet("add", "orders", "--kind", "extract", "--settings", "o.properties").exit_code == 0
    assert "an operator: added" in fleet("history", "duty", "report").stdout
    wrong = fleet("add", "nothing")
    assert wrong.exit_code == 1
    assert "command is missing" in str(wrong.exception) + wrong.output


def test_what_stops_something_asks_first(fleet: FleetCommands) -> None:
    fleet.filled()
    asked = fleet("stop", "d")
    assert asked.exit_code == 1
    assert not fleet.picture().duties["d"].halted
    assert fleet("stop", "d", "--yes").stdout == "duty d will be stopped\n"
    assert fleet.picture().duties["d"].halted
    assert fleet("start", "d").stdout == "duty d is waiting at a\n"
    assert fleet("disable", "d", "--yes").exit_code == 0
    assert fleet("enable", "d").stdout == "duty d enabled\n"


def test_it_is_said_what_follows_from_a_wish(in_memory: FleetCommands) -> None:
    assert in_memory("add", "e", "--command", "true").exit_code == 0
    said = [in_memory(*words).stdout for words in (("stop", "e", "--yes"), ("disable", "e", "--yes"), ("enable", "e"))]
    assert said == [
        "duty e is stopped\n",
        "duty e disabled\n",
        "duty e enabled, and stays stopped until it is started\n",
    ]
    assert in_memory("start", "e").stdout == "duty e will be started\n"


def test_a_declared_duty_can_be_removed_once_the_settings_do_not_declare_it(in_memory: FleetCommands) -> None:
    declared = Duty("old", Work(command=("true",)), DutyStatus.STOPPED, halted=True, declared=True)
    assert in_memory.store.commit(FleetCommit((PutRecord(declared),)))
    duties = in_memory.path.with_name("duties.toml")
    with in_memory.path.open("a") as settings:
        settings.write(f"fleetDutiesFile={duties}\n")
    duties.write_text('[old]\ncommand = ["true"]\n')
    refused = in_memory("remove", "old", "--yes")
    assert "declared in the settings: take it out there" in str(refused.exception) + refused.output
    duties.write_text("")
    assert in_memory("remove", "old", "--yes").stdout == "duty old removed\n"


def test_workers_are_told_by_messages(fleet: FleetCommands) -> None:
    fleet.filled()
    commands = [("shut-down", "a"), ("disable", "a", "--worker"), ("rebalance",), ("stop", "d", "--kill")]
    for command in commands:
        assert fleet(*command, "--yes").exit_code == 0
    assert fleet("enable", "a", "--worker").exit_code == 0
    sent = [(message.number, message.command) for message in fleet.picture().messages]
    assert sent == [(1, "shut-down"), (2, "disable"), (3, "rebalance"), (4, "kill"), (5, "enable")]


def test_errors_are_cleared_and_strangers_removed(fleet: FleetCommands) -> None:
    fleet.filled()
    assert fleet.store.commit(FleetCommit((PutRecord(Duty("e", Work(command=("true",)), DutyStatus.ERROR)),)))
    assert fleet("clear-error", "e").exit_code == 0
    assert fleet.picture().duties["e"].status is DutyStatus.UNASSIGNED
    assert fleet("remove", "e", "--yes").exit_code == 0
    assert set(fleet.picture().duties) == {"d"}
    assert fleet("move", "d", "nowhere", "--yes").exit_code == 1


def test_every_change_is_told_as_json_too(in_memory: FleetCommands) -> None:
    told = {
        ("add", "e", "--command", "true", "--set", "stopGrace=2.5"): {"duty": "e", "done": "added"},
        ("disable", "e", "--yes"): {"duty": "e", "done": "disabled"},
        ("enable", "e"): {"duty": "e", "done": "enabled"},
        ("disable", "a", "--worker", "--yes"): {"worker": "a", "asked": "disable"},
        ("enable", "a", "--worker"): {"worker": "a", "asked": "enable"},
        ("stop", "e", "--yes"): {"duty": "e", "asked": "stop"},
        ("start", "e"): {"duty": "e", "asked": "start"},
        ("stop", "d", "--kill", "--yes"): {"duty": "d", "asked": "kill"},
        ("rebalance", "--yes"): {"asked": "rebalance"},
        ("remove", "e", "--yes"): {"duty": "e", "done": "removed"},
        ("shut-down", "a", "--yes"): {"worker": "a", "asked": "shut-down"},
    }
    assert {words: json.loads(in_memory(*words, "--json").stdout) for words in told} == told
