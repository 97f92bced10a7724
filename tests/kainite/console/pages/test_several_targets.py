"""An application with several targets on each page: what stands where, and which target says what."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.console_world import ServedConsole, allow, served_console
from support.log_cli import LogWorld, two_atomic_targets
from support.stores import Database


def between(page: str, begin: str, end: str) -> str:
    return page[page.index(begin) :].partition(end)[0]


async def whole(console: ServedConsole, path: str, word: str) -> str:
    """Asks for a page until it has a word that the owner tells with a heartbeat."""
    async with asyncio.timeout(60):
        while word not in (page := (await console.ask(path)).text):  # noqa: ASYNC110 - a heartbeat tells
            await asyncio.sleep(0.05)
    return page


async def test_the_overview_tells_how_each_target_stands(two_targets: LogWorld) -> None:
    both = two_targets.owner.state.find("both")
    assert both is not None
    async with served_console(two_targets.properties) as console:
        page = await whole(console, "/app/", "2 units not applied there")
        targets = between(page, 'id="targets-title"', "</section>")
        assert f"every unit below id {both.tid}" in targets
        shop, crm = between(targets, ">shop<", "</tr>"), between(targets, ">crm<", "</tr>")
        assert "every unit is applied there" in shop
        assert "2 units not applied there, 1 of them failed" in crm
        assert "/app/units?target=crm&amp;status=failed" in crm
        assert between(page, 'class="way"', "</ol>").count(">Targets ") == 1


async def test_the_page_of_the_apply_job_has_a_section_a_target(two_targets: LogWorld) -> None:
    async with served_console(two_targets.properties) as console:
        page = (await console.ask("/app/apply")).text
        shop, crm = between(page, 'id="target-shop"', 'id="target-crm"'), page[page.index('id="target-crm"') :]
        assert ("No unit stands still" in shop, "No unit stands still" in crm) == (True, False)
        assert "all tables that no other target has" in shop
        assert "its tables: contact, crm.*" in crm
        assert crm.index(">both<") < crm.index(">behind<")
        assert "has no locks on rows" in crm
        alone = (await console.ask("/app/apply?target=crm")).text
        assert ('id="target-shop"' in alone, 'id="target-crm"' in alone) == (False, True)
        assert 'id="target-shop"' in (await console.ask("/app/apply?target=nobody")).text


async def test_a_units_page_and_its_copy_tell_each_part(two_targets: LogWorld) -> None:
    async with served_console(two_targets.properties) as console:
        parts = between((await console.ask("/app/unit?uow=both")).text, 'id="parts-title"', "</section>")
        assert "1 of 2 are done with it" in parts
        assert ("committed" in between(parts, ">shop<", "</tr>"), "[23514]" in between(parts, ">crm<", "</tr>")) == (
            True, True,
        )  # fmt: skip
        told = json.loads((await console.ask("/app/unit.json?uow=both")).text)["targets"]
        assert [(each["target"], each["status"], each["tables"]) for each in told] == [
            ("shop", "committed", ["item"]), ("crm", "failed", ["contact"]),
        ]  # fmt: skip


async def test_units_are_found_by_the_target_in_which_they_stand(two_targets: LogWorld) -> None:
    async with served_console(allow(two_targets.properties, consoleOperators="local")) as console:
        page = (await console.ask("/app/units")).text
        assert "shop: committed" in between(page, ">both<", "</tr>")
        assert 'value="retry"' in page
        there = (await console.ask("/app/units?target=crm")).text
        assert (">both<" in there, ">behind<" in there, ">shop&#39;s<" in there) == (True, True, False)
        assert 'value="retry"' not in there, "a bulk request knows no target"
        assert "target=crm" in between(there, 'class="facets"', "</nav>")
        failed = (await console.ask("/app/units?target=crm&status=failed")).text
        assert (">both<" in failed, ">behind<" in failed) == (True, False)
        assert "No unit fits" in (await console.ask("/app/units?target=shop")).text
        assert ">both<" in (await console.ask("/app/units?target=nobody")).text


@pytest.mark.parametrize("is_away", [False, True])
async def test_each_deltas_row_is_asked_of_the_target_that_has_its_table(
    two_targets: LogWorld, postgres: str, mariadb: str, is_away: bool
) -> None:
    Database(postgres).run("CREATE TABLE item (id bigint PRIMARY KEY, v bigint); INSERT INTO item VALUES (1, 4711)")
    Database(mariadb).run(
        "CREATE TABLE contact (id bigint PRIMARY KEY, v bigint); INSERT INTO contact VALUES (1, 4712)"
    )
    text = two_targets.properties.read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("target.shop =", "target.crm ="))]
    shop = "postgresql://nobody@127.0.0.1:1/none" if is_away else postgres
    two_targets.properties.write_text("\n".join([*lines, f"target.shop = {shop}", f"target.crm = {mariadb}", ""]))
    async with served_console(two_targets.properties) as console:
        page = (await console.ask("/app/target-rows?uow=both")).text
        of_shop, of_crm = (between(page, f'id="target-{name}"', "</section>") for name in ("shop", "crm"))
        assert ("4711" in of_shop, "rows are not shown" in of_shop) == (not is_away, is_away)
        assert ("4712" in of_crm, "[23514]" in of_crm, "rows are not shown" in of_crm) == (True, True, False)


async def test_targets_that_commit_together_are_shown_with_the_units_of_all(log_world: LogWorld, postgres: str) -> None:
    """Shows the pages of units without parts: what stands still is told, and nothing is asked of one target alone."""
    with log_world.properties.open("a") as file:
        file.write(two_atomic_targets(postgres, postgres))
    async with served_console(log_world.properties) as console:
        page = (await console.ask("/app/apply")).text
        shop, crm = between(page, 'id="target-shop"', 'id="target-crm"'), page[page.index('id="target-crm"') :]
        assert (">bad<" in shop, ">bad<" in crm) == (True, True)
        assert "its tables: contact, crm.*" in crm
        overview = (await console.ask("/app/")).text
        assert 'id="targets-title"' not in overview
        units = (await console.ask("/app/units?target=crm")).text
        assert ">bad<" in units
        assert "target=crm" not in between(units, 'class="facets"', "</nav>")
