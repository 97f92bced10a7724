"""A headless Chromium, Debian's build (``tools/peers``), that opens pages and keeps what went wrong in them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, async_playwright, expect

PROGRAM: Final = Path(sys.prefix) / "peers/chromium/chromium"
AXE: Final = Path(sys.prefix) / "peers/node/node_modules/axe-core/axe.min.js"
SCREENSHOTS: Final = "KAINITE_SCREENSHOTS"
"""Names the variable with the folder that gets screenshots; without it none are taken: each costs as much as a page."""

expect.set_options(timeout=60_000)  # a loaded machine takes its time for a page


@dataclass
class WatchedPage:
    """A page, and what its console said of errors: a broken policy, a script's error."""

    page: Page
    problems: list[str] = field(default_factory=list)

    async def axe(self) -> list[str]:
        """Returns what axe-core finds against WCAG's levels A and AA."""
        await self.page.evaluate(AXE.read_text())
        found: dict[str, Any] = await self.page.evaluate(
            "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
        )
        return [f"{each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found["violations"]]

    async def shot(self, name: str) -> None:
        """Takes a screenshot of the whole page, where :data:`SCREENSHOTS` names a folder."""
        if (folder := os.environ.get(SCREENSHOTS)) is not None:
            await self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Runs a browser."""
    assert PROGRAM.exists(), "Chromium is missing: make peers"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened(browser: Browser, **options: Any) -> AsyncIterator[WatchedPage]:
    """Opens a page in a session of its own; ``options`` are Playwright's of a context."""
    context = await browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(60_000)
    watched = WatchedPage(await context.new_page())
    watched.page.on("pageerror", lambda error: watched.problems.append(str(error)))
    watched.page.on("console", lambda said: watched.problems.append(said.text) if said.type == "error" else None)
    watched.page.on("dialog", lambda dialog: watched.problems.append(f"dialog {dialog.message}"))
    try:
        yield watched
    finally:
        await context.close()


async def answers_keys(page: Page) -> None:
    """Waits until the console's script, which the browser runs after the page is there, answers the page's keys."""
    await expect(page.locator("[data-help]").first).to_be_visible()
