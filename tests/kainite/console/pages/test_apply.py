"""The page of the apply job."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

from kainite.console.access import Visitor
from kainite.console.lock_watch import LockWaits
from kainite.console.observed import LogReading
from kainite.console.observed_target import observed_targets
from kainite.console.pages.apply import AppliedTarget, duties_of_tables, tables_page, targets_asked_for
from kainite.console.rendering import environment
from kainite.fleet.model.records import Duty, DutyKind, Picture, Work
from kainite.targets.lock_waits import LockHolder, LockWait
from kainite.verdict.facts import FleetFacts, ReplicaFacts, ReplicaTableFacts
from kainite.verdict.judging import judge
from support.console_world import allow, served_console
from support.log_cli import LogWorld, two_targets_settings
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


def apply_page(replica: ReplicaFacts, locks: LockWaits = LockWaits(()), wanted: str | None = None) -> str:  # noqa: B008
    """Returns the page's live region, for what a target tells."""
    picture = Picture({}, {"verify": Duty("verify", Work(DutyKind.VERIFY))}, None)
    verdict = judge(well(replica=replica, fleet=FleetFacts(picture)))
    application = SimpleNamespace(name="app", has_log=True, has_several_targets=False)
    return environment("").get_template("apply.html").render(
        app=application, apps=["app"], visitor=Visitor("ada", may_act=True), version="1", verdict=verdict, now_ms=0,
        live=True, path="apply", here="", prefix="", reading=LogReading(True), paused="", wanted="",
        views=[AppliedTarget("", "PostgreSQL", (), (), [], locks)],
        duties=duties_of_tables(verdict), tables=tables_page(verdict, wanted),
    )  # fmt: skip


def test_locks_tables_comparisons_and_duties_are_shown() -> None:
    holder = LockHolder(4712, "ann psql", "idle in transaction", 3600.0, "UPDATE item SET v = …")
    tables = (ReplicaTableFacts("sales.order", "failed", False, "no such column"),
              ReplicaTableFacts("sales.line", "catching up", False, "", 4, 4, 12_345, 7),
              ReplicaTableFacts("sales.item", "live", True, "", 1, 1, 99))  # fmt: skip
    replica = ReplicaFacts(
        load="live",
        tables=tables,
        verdict="different",
        passed=False,
        summary="3 of 9 rows differ",
        age=7200.0,
        every=86_400.0,
    )
    page = apply_page(replica, LockWaits((LockWait(4711, 12.0, "INSERT INTO item …", (holder,)),)))
    words = (
        "session 4712", "idle in transaction", "sales.line", "no such column", "3 of 9 rows differ", "start now",
        "1 of 3 are live", "sales.item", "catching up", "4 of 4", "12,345",
    )  # fmt: skip
    assert [each for each in words if each not in page] == []
    assert "Pages of the tables" not in page


def test_hundreds_of_tables_stand_on_pages() -> None:
    replica = ReplicaFacts(
        load="live", tables=tuple(ReplicaTableFacts(f"t{number:03d}", "live", True) for number in range(230))
    )
    first, last = apply_page(replica), apply_page(replica, wanted="5")
    assert ("t049" in first, "t050" in first, "1–50 of 230" in first) == (True, False, True)
    assert ("t199" in last, "t229" in last, "201–230 of 230" in last) == (False, True, True)
    assert 'href="/app/apply?tables=4#tables"' in last
    assert 'rel="next"' not in last


def test_a_query_names_one_target_or_means_all(tmp_path: Path) -> None:
    shop, crm = observed_targets(two_targets_settings(tmp_path))
    assert targets_asked_for((shop, crm), "crm") == [crm]
    for wanted in (None, "", "nobody"):
        assert targets_asked_for((shop, crm), wanted) == [shop, crm]
