"""The console in a real browser: reading, acting, keys, hostile names, a restart, dark, a phone, WCAG AA.

``KAINITE_SCREENSHOTS=FOLDER`` takes a screenshot of each page.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.async_api import Browser, expect

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.position import Position
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.touches import Touched
from support.browser import answers_keys, chromium, opened
from support.console_world import allow, health_page, made_log, served_console
from support.growing_log import GrowingLog
from support.log_builders import fragment
from support.log_cli import LogWorld
from support.names import unique

pytestmark = pytest.mark.timeout(300)

SCRIPT = "<script>alert(document.domain)</script>"
RIGHT_TO_LEFT = "طلب-١٢٣\u202egnp.exe"
ASKS_NOW = """(() => {
    const region = document.getElementById("live");
    delete region.dataset.waits;
    region.dataset.asked = "0";
    document.dispatchEvent(new Event("visibilitychange"));
    return region.dataset.waits === "1";
})()"""
"""Has the page ask for what is new, and tells whether it does."""

OPEN_PAGE_IS_SEEN = """(() => {
  const seen = document.querySelector("nav [aria-current]").getBoundingClientRect();
  return 0 <= seen.left && seen.right <= innerWidth;
})()"""

PAGES = (
    "", "units", "unit?uow=bad", "target-rows?uow=bad", "correct?uow=bad", "shards", "shard?shard=shard-0",
    "reset?shard=shard-0", "apply", "log", "history",
)  # fmt: skip
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


SEVERAL = ("", "units", "units?target=crm", "unit?uow=both", "target-rows?uow=both", "apply", "apply?target=crm")


async def test_pages_of_several_targets_read_everywhere(two_targets: LogWorld) -> None:
    """Shows that no page is wider than the window, and that axe-core finds nothing."""
    file = allow(two_targets.properties, consoleOperators="local")
    async with served_console(file) as console, chromium() as browser:
        for look, options in LOOKS.items():
            async with opened(browser, **options) as watched:
                await watched.page.goto(console.url)
                await expect(watched.page.locator("#targets-title + table")).to_contain_text("1 of them failed")
                for path in SEVERAL:
                    await watched.page.goto(f"{console.url}app/{path}")
                    await expect(watched.page.locator("main")).to_contain_text("crm")
                    fits = await watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                    assert fits, (look, path)
                    assert await watched.axe() == [], (look, path)
                    shown = path.replace("?", "-").replace("=", "-") or "overview"
                    await watched.shot(f"several-{look}-{shown}")
                assert watched.problems == []


async def test_a_person_reads_types_and_acts(log_world: LogWorld) -> None:
    file = allow(log_world.properties, consoleOperators="local")
    async with served_console(file) as console, chromium() as browser, opened(browser) as watched:
        page = watched.page
        await page.goto(console.url)
        await expect(page.locator(".headline")).to_contain_text("1 unit failed; the first is bad (id 1)")
        await expect(page.locator(".charts canvas").first).to_be_visible()
        await answers_keys(page)

        # keys alone: to the units, the filter, a row, and back to the list of keys
        await page.keyboard.press("2")
        await expect(page.locator("h1")).to_have_text("Units of work")
        await answers_keys(page)
        await page.keyboard.press("?")
        await expect(page.locator("#keys")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.keyboard.press("/")
        await expect(page.locator("[data-filter]")).to_be_focused()
        await page.keyboard.type("ba")
        asked = await page.evaluate("document.getElementById('live').dataset.asked")
        await expect(page.locator("#live")).not_to_have_attribute("data-asked", asked)
        await expect(page.locator("[data-filter]")).to_have_value("ba")
        await page.keyboard.press("Enter")
        await expect(page.locator("[data-rows] tbody tr")).to_have_count(1)
        await answers_keys(page)
        await page.keyboard.press("j")
        await expect(page.locator("tr.selected")).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("bad")
        await answers_keys(page)

        # what is selected is not thrown away by what is new
        await page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
        assert await page.evaluate(ASKS_NOW) is False
        await page.evaluate("getSelection().removeAllRanges()")
        assert await page.evaluate(ASKS_NOW) is True

        await page.get_by_role("button", name="Retry …").click()
        await expect(page.locator(".form")).to_contain_text("1 unit will be applied again")
        await expect(page.locator(".form :focus")).to_have_count(1)
        await page.keyboard.type("the customer is there now")
        await page.get_by_role("button", name="Retry", exact=True).click()
        await expect(page.locator("#outcome")).to_contain_text("Done. unit bad will be applied again")
        assert log_world.owner.state.units[1].status.value == "in progress"
        await page.get_by_role("link", name="Back").click()
        await expect(page.locator("header.unit .status")).to_have_text("in progress")
        await answers_keys(page)
        await page.keyboard.press("6")
        await expect(page.locator("tbody")).to_contain_text("the customer is there now")
        assert watched.problems == []

        # somebody else sees it without doing anything
        async with opened(browser) as other:
            await other.page.goto(f"{console.url}app/units?status=in+progress")
            await expect(other.page.locator("tbody")).to_contain_text("bad")
            await log_world.owner.append(
                "shard-0", Position(2), Position(2), [fragment("late", [4], count=1)], Position(1)
            )
            await expect(other.page.locator("tbody")).to_contain_text("late")


async def test_names_and_values_from_outside_stay_text(log_world: LogWorld) -> None:
    large = Delta("t", Operation.UPSERT, {"id": 7}, {"id": 7, "v": "x" * 1_000_000 + SCRIPT}, {}, None)
    units = [
        fragment(SCRIPT, [5], count=1), fragment(RIGHT_TO_LEFT, [6], count=1),
        Fragment("large", (large,), Touched(frozenset([7])), (UnitEnd(1, None),)),
    ]  # fmt: skip
    await log_world.owner.append("shard-0", Position(2), Position(2), units, Position(1))
    async with served_console(log_world.properties) as console, chromium() as browser, opened(browser) as watched:
        page = watched.page
        await page.goto(f"{console.url}app/units")
        await expect(page.locator("tbody")).to_contain_text(SCRIPT)
        await expect(page.locator("tbody")).to_contain_text("\\u202egnp.exe")
        await page.get_by_text(SCRIPT).click()
        await expect(page.locator("h1")).to_have_text(SCRIPT)
        answer = await page.goto(f"{console.url}app/unit?uow=large")
        assert answer is not None
        assert len(await answer.body()) < 50_000
        await expect(page.locator(".values")).to_contain_text("1,000,039 characters")
        assert watched.problems == []


async def test_a_restart_is_told_and_passes(log_world: LogWorld) -> None:
    async with chromium() as browser, opened(browser) as watched:
        page = watched.page
        async with served_console(log_world.properties) as console:
            await page.goto(f"{console.url}app/units")
            await expect(page.locator("tbody")).to_contain_text("bad")
        await expect(page.locator("#stale")).to_contain_text("does not answer")
        await expect(page.locator("tbody")).to_contain_text("bad")
        async with served_console(log_world.properties, listen=console.host):
            await expect(page.locator("#stale")).to_be_hidden()


async def test_each_page_is_readable_dark_small_and_without_scripts(
    log_world: LogWorld, dynamodb: Any, postgres: str
) -> None:
    name = unique("app")
    leases = LeaseTable(dynamodb, name)
    await asyncio.to_thread(leases.create)
    await asyncio.to_thread(leases.put_new, Lease("shard-0", "host-1", 7, Checkpoint("5")))
    with psycopg.connect(postgres) as target:
        target.execute("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
        target.execute("INSERT INTO t VALUES (1, 'there')")
    child = {"state": "PROCESSING", "pid": 4711, "lines": ["Traceback", f"ImportError: {SCRIPT}"]}
    with health_page({"/health": {"worker_id": "host-1"}, "/stderr": {"shards": {"shard-0": child}}}) as port:
        file = allow(
            log_world.properties, consoleOperators="local", streamName="s", failoverTimeMillis="1000",
            metricsPort=str(port), tableName=name, target=postgres,
        )  # fmt: skip
        async with served_console(file) as console, chromium() as browser:
            looks = [looked_at(browser, console.url, look, options) for look, options in LOOKS.items()]
            found = await asyncio.gather(*looks, read_without_scripts(browser, console.url))
    assert [each for some in found for each in some] == []


async def looked_at(browser: Browser, url: str, look: str, options: dict[str, Any]) -> list[str]:
    """Opens each page; returns what is wrong with it."""
    found: list[str] = []
    async with opened(browser, **options) as watched:
        for path in PAGES:
            answer = await watched.page.goto(f"{url}app/{path}")
            assert answer is not None
            assert answer.ok, path
            await expect(watched.page.locator("main h1")).to_have_count(1)
            shown = f"{path.partition('?')[0] or 'overview'}-{look}"
            await watched.shot(shown)
            found += [f"{shown}: {each}" for each in await watched.axe()]
            width = await watched.page.evaluate("document.documentElement.scrollWidth")
            if width > watched.page.viewport_size["width"]:  # type: ignore[index]
                found.append(f"{shown}: wider than the window")
            if not await watched.page.evaluate(OPEN_PAGE_IS_SEEN):
                found.append(f"{shown}: the bar of pages does not show which one is open")
        return found + watched.problems


async def read_without_scripts(browser: Browser, url: str) -> list[str]:
    """Reads and acts without JavaScript; returns what is wrong."""
    async with opened(browser, java_script_enabled=False) as watched:
        page = watched.page
        await page.goto(f"{url}app/target-rows?uow=bad")
        await expect(page.locator("main")).to_contain_text("there")
        await page.goto(f"{url}app/shard?shard=shard-0")
        await expect(page.locator(".lines")).to_have_text(f"Traceback\nImportError: {SCRIPT}")
        await page.get_by_role("link", name="reset …").click()
        await expect(page.get_by_role("button", name="Check …")).to_be_visible()
        await page.goto(f"{url}app/units?status=failed")
        await page.get_by_role("link", name="bad").click()
        await expect(page.locator("main")).to_contain_text("violates check")
        await page.get_by_role("button", name="Discard …").click()
        await expect(page.locator(".form")).to_contain_text("will never be applied to the target")
        return watched.problems


async def test_tens_of_thousands_of_units_are_searched(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    store, file = await asyncio.to_thread(made_log, dynamodb, moto_endpoint, tmp_path)
    log = await asyncio.to_thread(GrowingLog, store)
    await asyncio.to_thread(log.units, (f"T-{number:06d}" for number in range(20_000)))
    async with served_console(file) as console, chromium() as browser, opened(browser) as watched:
        page = watched.page
        await page.goto(f"{console.url}app/units")
        await expect(page.locator(".pages span")).to_have_text("1–50 of 20,000", timeout=240_000)
        await answers_keys(page)
        await page.keyboard.press("/")
        await page.keyboard.type("T-0199*")
        await page.keyboard.press("Enter")
        await expect(page.locator(".pages span")).to_have_text("1–50 of 100")
        await page.get_by_role("link", name="Older").click()
        await expect(page.locator("[data-rows] tbody tr")).to_have_count(50)
        await expect(page.locator("[data-rows] tbody tr").last).to_contain_text("T-019900")
        assert watched.problems == []


async def test_a_dead_daemon_and_a_stalled_shard_stand_first(log_world: LogWorld, dynamodb: Any) -> None:
    application = unique("app")
    leases = LeaseTable(dynamodb, application)
    await asyncio.to_thread(leases.create)
    for shard, owner in (("shard-dead", "host-dead"), ("shard-stalled", "host-live")):
        await asyncio.to_thread(leases.put_new, Lease(shard, owner, 7, Checkpoint("5")))
    stalled = {"shard": "shard-stalled", "health": "stalled", "why": "its iterator stands still", "failures": 2,
               "stderr": "ImportError: no module named x", "pid": 4711, "behind_millis": 120_000}  # fmt: skip
    child = {"state": "PROCESSING", "pid": 4711, "lines": ["Traceback", stalled["stderr"]]}
    answers = {
        "/health": {"worker_id": "host-live", "shards": [stalled]},
        "/stderr": {"shards": {"shard-stalled": child}},
    }
    with health_page(answers) as port:
        file = allow(
            log_world.properties, consoleOperators="local", streamName="s", failoverTimeMillis="1000",
            metricsPort=str(port), tableName=application,
        )  # fmt: skip
        async with served_console(file) as console, chromium() as browser, opened(browser) as watched:
            page = watched.page
            await page.goto(f"{console.url}app/shards")
            shards = page.locator("[data-rows] tbody tr")
            await expect(shards.nth(0)).to_contain_text("stalled")
            await expect(shards.filter(has_text="shard-stalled")).to_contain_text("ImportError: no module named x")
            await expect(shards.filter(has_text="shard-stalled")).to_contain_text("child 4711")
            await expect(shards.filter(has_text="shard-dead")).to_contain_text("expired")
            await page.get_by_role("link", name="shard-stalled").click()
            await expect(page.locator(".lines")).to_have_text("Traceback\nImportError: no module named x")
            await expect(page.get_by_role("button", name="restart child …")).to_be_visible()
            await page.goto(console.url)
            await expect(page.locator(".headline.broken")).to_be_visible()
            await expect(page.locator(".checks li.broken").first).to_contain_text("shard")
            await watched.shot("shards-in-trouble")
            assert watched.problems == []


async def test_a_reset_says_first_what_it_repeats(log_world: LogWorld, dynamodb: Any, kinesis: Any) -> None:
    name = unique("app")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    (shard,) = kinesis.list_shards(StreamName=name)["Shards"]
    leases = LeaseTable(dynamodb, name)
    await asyncio.to_thread(leases.create)
    at = Checkpoint(shard["SequenceNumberRange"]["StartingSequenceNumber"])
    await asyncio.to_thread(leases.put_new, Lease(shard["ShardId"], None, 7, at))
    (endpoint,) = [line for line in log_world.properties.read_text().splitlines() if "dynamoDBEndpoint" in line]
    file = allow(
        log_world.properties, consoleOperators="local", streamName=name, failoverTimeMillis="1000",
        tableName=name, kinesisEndpoint=endpoint.partition(" = ")[2],
    )  # fmt: skip
    async with served_console(file) as console, chromium() as browser, opened(browser) as watched:
        page = watched.page
        await page.goto(f"{console.url}app/shards")
        await page.get_by_role("link", name=shard["ShardId"]).click()
        await page.get_by_role("link", name="reset …").click()
        await page.get_by_label("records behind a sequence number").check()
        await page.get_by_label("The sequence number of the last record that is done").fill("x")
        await page.get_by_label("Why").fill("again")
        await page.get_by_role("button", name="Check …").click()
        await expect(page.locator("#outcome")).to_contain_text("neither TRIM_HORIZON, LATEST nor a sequence number")
        await expect(page.get_by_label("Why")).to_have_value("again")
        await page.get_by_label("the oldest record that the stream has").check()
        await page.get_by_role("button", name="Check …").click()
        await expect(page.locator(".details")).to_contain_text("records behind the new position are delivered again")
        assert leases.scan()[0].checkpoint == at
        await page.get_by_role("button", name="Reset checkpoints").click()
        await expect(page.locator("#outcome")).to_contain_text("Done. 1 of 1 shard is reset")
        assert leases.scan()[0].checkpoint == TRIM_HORIZON
        await page.get_by_role("link", name="History").first.click()
        await expect(page.locator("tbody tr").first).to_contain_text("again")
