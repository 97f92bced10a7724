"""``kainite fleet``, called as from a shell; on daemons that run: tests/end_to_end/test_duties.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main
from kainite.fleet.model.records import Duty, Lead, Picture, Restart, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.store.contract import FleetCommit, FleetStore, PutRecord
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.fleet.store.memory import MemoryFleetStore
from support.names import unique


class Fleet:
    """A fleet's table, and the command on it."""

    def __init__(self, dynamodb: Any, endpoint: str, folder: Path) -> None:
        name = unique("app")
        self.path = folder / "app.properties"
        self.path.write_text(f"applicationName={name}\nregionName=us-east-1\ndynamoDBEndpoint={endpoint}\n")
        self.store: FleetStore = DynamoDBFleetStore(dynamodb, f"{name}-Fleet")

    def filled(self) -> Fleet:
        self.store.create()
        worker = Worker("a", "1", labels=("big",))
        records = (worker, Lead("a", "1", 1), Duty("d", Work(command=("true",))).given_to(worker))
        for record in records:
            assert self.store.commit(FleetCommit((PutRecord(record),)))
        return self

    def __call__(self, command: str, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["fleet", command, "-p", str(self.path), *arguments])

    def picture(self) -> Picture:
        return self.store.read()


@pytest.fixture
def in_memory(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Gives a fleet whose table is in memory: a hundred times as fast."""
    fleet.store = MemoryFleetStore()
    for module in ("fleet", "fleet_changes"):
        monkeypatch.setattr(f"kainite.cli.{module}.store_of", lambda _: fleet.store)
    return fleet.filled()


@pytest.fixture
def fleet(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Fleet:
    return Fleet(dynamodb, moto_endpoint, tmp_path)


def test_workers_and_duties_are_shown(fleet: Fleet) -> None:
    fleet.filled()
    [worker] = json.loads(fleet("workers", "--json").stdout)
    assert (worker["worker"], worker["leads"], worker["duties"], worker["labels"]) == ("a", True, ["d"], ["big"])
    [duty] = json.loads(fleet("duties", "--json").stdout)
    assert (duty["duty"], duty["status"], duty["worker"], duty["wanted"]) == ("d", "waiting", "a", "yes")
    assert "waiting" in fleet("duties").stdout
    assert "alive" in fleet("workers").stdout
    assert fleet("history", "leader").stdout == "none\n"


def test_a_duty_is_added_as_it_is_described(fleet: Fleet) -> None:
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


def test_what_stops_something_asks_first(fleet: Fleet) -> None:
    fleet.filled()
    asked = fleet("stop", "d")
    assert asked.exit_code == 1
    assert not fleet.picture().duties["d"].halted
    assert fleet("stop", "d", "--yes").stdout == "duty d will be stopped\n"
    assert fleet.picture().duties["d"].halted
    assert fleet("start", "d").stdout == "duty d is waiting at a\n"
    assert fleet("disable", "d", "--yes").exit_code == 0
    assert fleet("enable", "d").stdout == "duty d enabled\n"


def test_it_is_said_what_follows_from_a_wish(in_memory: Fleet) -> None:
    assert in_memory("add", "e", "--command", "true").exit_code == 0
    said = [in_memory(*words).stdout for words in (("stop", "e", "--yes"), ("disable", "e", "--yes"), ("enable", "e"))]
    assert said == [
        "duty e is stopped\n",
        "duty e disabled\n",
        "duty e enabled, and stays stopped until it is started\n",
    ]
    assert in_memory("start", "e").stdout == "duty e will be started\n"


def test_a_declared_duty_can_be_removed_once_the_settings_do_not_declare_it(in_memory: Fleet) -> None:
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


def test_workers_are_told_by_messages(fleet: Fleet) -> None:
    fleet.filled()
    commands = [("shut-down", "a"), ("disable", "a", "--worker"), ("rebalance",), ("stop", "d", "--kill")]
    for command in commands:
        assert fleet(*command, "--yes").exit_code == 0
    assert fleet("enable", "a", "--worker").exit_code == 0
    sent = [(message.number, message.command) for message in fleet.picture().messages]
    assert sent == [(1, "shut-down"), (2, "disable"), (3, "rebalance"), (4, "kill"), (5, "enable")]


def test_errors_are_cleared_and_strangers_removed(fleet: Fleet) -> None:
    fleet.filled()
    assert fleet.store.commit(FleetCommit((PutRecord(Duty("e", Work(command=("true",)), DutyStatus.ERROR)),)))
    assert fleet("clear-error", "e").exit_code == 0
    assert fleet.picture().duties["e"].status is DutyStatus.UNASSIGNED
    assert fleet("remove", "e", "--yes").exit_code == 0
    assert set(fleet.picture().duties) == {"d"}
    assert fleet("move", "d", "nowhere", "--yes").exit_code == 1


def test_without_a_table_it_is_said_what_to_do(fleet: Fleet) -> None:
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
def test_what_is_wrong_is_said(in_memory: Fleet, words: tuple[str, ...], complaint: str) -> None:
    for worker in (Worker("late", "1", WorkerStatus.DEAD), Worker("small", "1", capacity=0.5)):
        assert in_memory.store.commit(FleetCommit((PutRecord(worker),)))
    wrong = in_memory(*words)
    assert wrong.exit_code in (1, 2)
    assert complaint in " ".join((str(wrong.exception) + wrong.output).split())


def test_every_change_is_told_as_json_too(in_memory: Fleet) -> None:
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
