"""The page of the apply job."""

from __future__ import annotations

import asyncio

from kainite.console.pages.apply import duties_of_tables
from kainite.fleet.model.records import Duty, Picture, Work
from kainite.verdict.facts import FleetFacts
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
    picture = Picture({}, {name: Duty(name, Work(command=command)) for name, command in commands.items()}, None)
    verdict = judge(well(fleet=FleetFacts(picture)))
    assert [duty.name for duty in duties_of_tables(verdict)] == ["again", "check"]
    assert duties_of_tables(judge(well())) == []
