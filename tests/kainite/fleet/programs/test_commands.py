"""The command lines of duties, and which of them a host runs: what its own files say, whatever the table says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from kainite.base.errors import FleetError
from kainite.fleet.declared import work_of
from kainite.fleet.model.records import Duty, Work
from kainite.fleet.programs.commands import HostCommand, HostCommands, command_of


def test_a_kind_runs_kainite_on_the_workers_settings_or_on_its_own() -> None:
    own = Path("/etc/kainite/app.properties")
    kainite = (sys.executable, "-m", "kainite")
    assert command_of(Work(kind="apply"), own) == (*kainite, "apply", "-p", str(own))
    assert command_of(Work(kind="log"), own) == (*kainite, "log", "serve", "-p", str(own))
    other = Work(kind="extract", properties="orders.properties")
    assert command_of(other, own) == (*kainite, "extract", "-p", "/etc/kainite/orders.properties")
    absolute = Work(kind="extract", properties="/srv/orders.properties")
    assert command_of(absolute, own)[-1] == "/srv/orders.properties"


async def test_the_console_runs_as_a_duty_and_says_when_it_is_ready(tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    file.write_text("applicationName = orders\nregionName = us-east-1\nconsoleListen = 127.0.0.1:0\n")
    work = work_of("console", {"kind": "console"})
    program = await asyncio.create_subprocess_exec(*command_of(work, file), stderr=asyncio.subprocess.PIPE)
    assert program.stderr is not None
    try:
        async with asyncio.timeout(60):
            while work.ready.encode() not in (line := await program.stderr.readline()):
                assert line, "it ended before it was ready"
    finally:
        if program.returncode is None:
            program.terminate()
        await program.communicate()
    assert work.ready == "console ready"


def test_a_program_runs_as_it_is_written() -> None:
    assert command_of(Work(command=("sh", "-c", "true")), None) == ("sh", "-c", "true")


OWN = Path("/etc/kainite/app.properties")
REPORT = Work(command=("python", "/srv/report.py"))
APPLY = command_of(Work(kind="apply"), OWN)
ALLOWED = frozenset({"sleep '1 0'", "kainite log serve"})
HOST = HostCommands({"report": REPORT, "apply": Work(kind="apply")}, ALLOWED, OWN, "reports")


def test_a_declared_duty_runs_as_the_hosts_files_declare_it() -> None:
    forged = Duty("report", Work(command=("sh", "-c", "id")))
    assert HOST.of(forged) == HOST.of(Duty("report", REPORT)) == HostCommand(REPORT.command, "reports")
    assert HOST.of(Duty("apply", Work(kind="apply", properties="/tmp/forged"))) == HostCommand(APPLY)


def test_another_duty_runs_where_its_command_is_listed() -> None:
    assert HOST.of(Duty("nap", Work(command=("sleep", "1 0")))) == HostCommand(("sleep", "1 0"), "reports")
    assert HOST.of(Duty("log", Work(kind="log"))).words[2:] == ("kainite", "log", "serve", "-p", str(OWN))


@pytest.mark.parametrize(
    "work",
    [
        Work(command=("sleep", "1", "0")),
        Work(command=("sleep", "1 0", ";", "id")),
        Work(kind="log", properties="/tmp/forged"),
        Work(kind="extract"),
    ],
)
def test_nothing_else_runs(work: Work) -> None:
    with pytest.raises(FleetError, match="do not declare the duty 'other', and fleetCommands does not list"):
        HOST.of(Duty("other", work))
