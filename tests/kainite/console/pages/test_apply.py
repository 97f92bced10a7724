"""The page of the apply job."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from kainite.console.access import Visitor
from kainite.console.lock_watch import LockWaits
from kainite.console.observed import LogReading
from kainite.console.pages.apply import duties_of_tables
from kainite.console.rendering import environment
from kainite.fleet.model.records import Duty, DutyKind, Picture, Work
from kainite.targets.lock_waits import LockHolder, LockWait
from kainite.verdict.facts import FleetFacts, ReplicaFacts
from kainite.verdict.judging import judge
from support.console_world import allow, served_console
from support.log_cli import LogWorld
from support.verdicts import well


async def test_units_that_stand_still_say_why(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        page = (await console.ask("/app/apply")).text
        still = page[page.index("Units that stand still") :]
        assert still.index("bad") < still.index("waiting")
        assert "Pause" in page
        assert "Done." in (await console.send("/app/do", {"do": "pause", "sure": "yes", "why": "a repair"})).text
        async with asyncio.timeout(60):
            while "Resume" not in (await console.ask("/app/apply")).text:  # noqa: ASYNC110 - a heartbeat tells
                await asyncio.sleep(0.05)


def test_duties_that_verify_or_load_are_those_that_kainite_runs() -> None:
    commands = {
        "check": ("/opt/kainite/bin/kainite", "verify", "-p", "f"),
        "again": ("kainite", "replicate", "reload", "-p", "f", "orders"),
        "other": ("/srv/verify", "kainite"),
        "cut": ("kainite", "replicate", "cutover"),
        "none": (),
    }
    duties = {name: Duty(name, Work(command=command)) for name, command in commands.items()}
    picture = Picture({}, {**duties, "verify": Duty("verify", Work(DutyKind.VERIFY))}, None)
    verdict = judge(well(fleet=FleetFacts(picture)))
    assert [duty.name for duty in duties_of_tables(verdict)] == ["again", "check", "verify"]
    assert duties_of_tables(judge(well())) == []


def test_locks_tables_comparisons_and_duties_are_shown() -> None:
    holder = LockHolder(4712, "ann psql", "idle in transaction", 3600.0, "UPDATE item SET v = …")
    replica = ReplicaFacts(
        load="live", loading=("sales.line",), failed=(("sales.order", "no such column"),), verdict="different",
        summary="3 of 9 rows differ", age=7200.0, every=86_400.0,
    )  # fmt: skip
    picture = Picture({}, {"verify": Duty("verify", Work(DutyKind.VERIFY))}, None)
    verdict = judge(well(replica=replica, fleet=FleetFacts(picture)))
    application = SimpleNamespace(name="app", has_log=True)
    page = environment("").get_template("apply.html").render(
        app=application, apps=["app"], visitor=Visitor("ada", may_act=True), version="1", verdict=verdict, now_ms=0,
        live=True, path="apply", here="", prefix="", reading=LogReading(True), paused="", batches=(), waiting=[],
        locks=LockWaits((LockWait(4711, 12.0, "INSERT INTO item …", (holder,)),)), duties=duties_of_tables(verdict),
    )  # fmt: skip
    words = ("session 4712", "idle in transaction", "sales.line", "no such column", "3 of 9 rows differ", "start now")
    assert [each for each in words if each not in page] == []
