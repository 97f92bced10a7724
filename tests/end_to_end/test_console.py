"""From a click on a page of the console to the row in the target: a retry, a correction, and two people at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from kainite.settings import LogSettings
from kainite.store.dynamodb import DynamoDBStore
from support.browser import answers_keys, chromium, opened
from support.console_world import ServedConsole, served_console
from support.names import unique
from support.schema_world import SchemaWorld, item
from support.stores import Database

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True)
class WatchedTarget:
    """A log with its owner, a target in SQLite, a console on it, and a browser."""

    world: SchemaWorld
    console: ServedConsole
    browser: Browser

    def at(self, path: str) -> str:
        return f"{self.console.url}app/{path}"


@asynccontextmanager
async def watched_target(dynamodb: Any, endpoint: str, folder: Path) -> AsyncIterator[WatchedTarget]:
    name, url, properties = unique("log"), f"sqlite:///{folder}/target.db", folder / "app.properties"
    properties.write_text(
        f"applicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {endpoint}\nunitsOfWork = true\n"
        f"logTableName = {name}\ntarget = {url}\nconsoleOperators = local\n"
    )
    log = LogSettings(table=name, owner="a", enabled=True, put_interval=0.0, poll=0.01, heartbeat=0.2)
    world = SchemaWorld(Database(url), DynamoDBStore(dynamodb, name), log)
    async with world.daemon(), served_console(properties) as console, chromium() as browser:
        yield WatchedTarget(world, console, browser)


async def pressed_until(page: Page, key: str, words: str) -> None:
    """Presses a key until what has the focus shows some words, as a person does who has no mouse."""
    for _ in range(60):
        await page.keyboard.press(key)
        if await page.evaluate("document.activeElement.textContent.trim()") == words:
            return
    pytest.fail(f"{words!r} is not reached by {key}")


async def test_a_correction_comes_from_the_page_into_the_target(
    dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    async with watched_target(dynamodb, moto_endpoint, tmp_path) as seen, opened(seen.browser) as watched:
        world, page = seen.world, watched.page
        await world.emit("bad", item(7, v=-5, name="ü"), item(8, v=2**53 + 1))
        await world.emit("behind", item(7, v=3))
        await world.apply()
        assert world.items() == []

        await page.goto(seen.at("unit?uow=bad"))
        await page.get_by_role("link", name="Correct …").click()
        edited = await page.get_by_label("Deltas").input_value()
        assert (json.loads(edited)[0]["row"]["v"], str(2**53 + 1) in edited) == (-5, True)

        # what does not fit is refused with the reason, and what was typed stays
        wrong = edited.replace('"v": -5', '"w": 5')
        await page.get_by_label("Deltas").fill(wrong)
        await page.get_by_label("Why").fill("the sign was wrong")
        await page.get_by_role("button", name="Check …").click()
        await expect(page.locator("#outcome")).to_contain_text("Not sent.")
        await expect(page.get_by_label("Deltas")).to_have_value(wrong)
        await expect(page.get_by_label("Why")).to_have_value("the sign was wrong")
        assert set(world.statuses()) == {"bad", "behind"}

        await page.get_by_label("Deltas").fill(edited.replace('"v": -5', '"v": 5'))
        await page.get_by_role("button", name="Check …").click()
        await expect(page.locator(".form")).to_contain_text("append bad-corrected to the log")
        await expect(page.locator("tr.changed").first).to_contain_text("-5")
        await expect(page.locator("tr.changed")).to_have_count(1)
        assert set(world.statuses()) == {"bad", "behind"}
        await page.get_by_role("button", name="Send a correction").click()
        await expect(page.locator("#outcome")).to_contain_text("Done. correction bad-corrected is in the log")

        await world.apply()
        await world.apply()
        assert world.items("id, v, name") == [(7, 3, "ü"), (8, 2**53 + 1, None)]
        await page.goto(seen.at("history"))
        await expect(page.locator("tbody tr").first).to_contain_text("the sign was wrong")
        assert [problem for problem in watched.problems if "409" not in problem] == []


async def test_a_retry_comes_from_the_keys_into_the_target(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    async with watched_target(dynamodb, moto_endpoint, tmp_path) as seen, opened(seen.browser) as watched:
        world, page = seen.world, watched.page
        world.database.run("INSERT INTO item (id, v) VALUES (1, 1); CREATE UNIQUE INDEX once ON item (v);")
        await world.emit("twice", item(2, "insert", v=1))
        await world.apply()
        assert world.statuses() == {"twice": "failed"}
        world.database.run("DELETE FROM item WHERE id = 1")

        await page.goto(seen.console.url)
        await answers_keys(page)
        await page.keyboard.press("2")
        await expect(page.locator("h1")).to_have_text("Units of work")
        await answers_keys(page)
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("twice")
        await answers_keys(page)
        await pressed_until(page, "Tab", "Retry …")
        await page.keyboard.press("Enter")
        await expect(page.locator(".form")).to_contain_text("1 unit will be applied again")
        await page.keyboard.type("the row is gone")
        await page.keyboard.press("Enter")
        await expect(page.locator("#outcome")).to_contain_text("Done.")
        await world.apply()
        assert world.items() == [(2, 1)]
        await pressed_until(page, "Tab", "Back")
        await page.keyboard.press("Enter")
        await expect(page.locator("header.unit .status")).to_have_text("committed")
        assert watched.problems == []


async def test_of_two_people_who_retry_the_second_is_told(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    async with watched_target(dynamodb, moto_endpoint, tmp_path) as seen:
        await seen.world.emit("bad", item(7, v=-5))
        await seen.world.apply()
        async with opened(seen.browser) as ann, opened(seen.browser) as bob, opened(seen.browser) as eve:
            await eve.page.goto(seen.at("units"))
            await expect(eve.page.locator("tbody .status")).to_have_text("failed")
            for person in (ann, bob):
                await person.page.goto(seen.at("unit?uow=bad"))
                await person.page.get_by_role("button", name="Retry …").click()
                await person.page.get_by_label("Why").fill("both")
            await ann.page.get_by_role("button", name="Retry", exact=True).click()
            await expect(ann.page.locator("#outcome")).to_contain_text("Done.")
            await expect(eve.page.locator("tbody .status")).to_have_text("in progress")
            await bob.page.get_by_role("button", name="Retry", exact=True).click()
            await expect(bob.page.locator("#outcome")).to_contain_text("Refused. ")
            await expect(bob.page.get_by_label("Why")).to_have_value("both")
            await bob.page.get_by_role("link", name="Back").click()
            await expect(bob.page.locator("header.unit .status")).to_have_text("in progress")
        assert await asyncio.to_thread(seen.world.statuses) == {"bad": "in progress"}
