"""The login by OpenID Connect in a browser, and what is tried without one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from playwright.async_api import expect

from kainite.console.oidc_login import _own_path
from support.browser import chromium, opened
from support.console_world import ServedConsole, allow, served_console
from support.log_cli import LogWorld
from support.oidc_provider import CLIENT, SECRET, OidcProviderDouble, oidc_provider
from support.ports import free_port

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True)
class LoginWorld:
    """A console whose users log in at a provider."""

    console: ServedConsole
    provider: OidcProviderDouble


@asynccontextmanager
async def login_world(world: LogWorld, prefix: str = "") -> AsyncIterator[LoginWorld]:
    secret, port = world.properties.with_name("client-secret"), free_port()
    secret.write_text(SECRET)
    secret.chmod(0o600)
    with oidc_provider() as provider:
        file = allow(
            world.properties, consoleOidcIssuer=provider.issuer, consoleOidcClientId=CLIENT,
            consoleOidcSecretFile=str(secret), consoleOperators="ada@example.com", consolePathPrefix=prefix,
            consoleOidcRedirect=f"http://127.0.0.1:{port}{prefix}/oidc/callback",
        )  # fmt: skip
        async with served_console(file, listen=f"127.0.0.1:{port}") as console:
            yield LoginWorld(console, provider)


async def test_a_user_is_led_to_the_provider_and_back_to_the_page_and_logs_out(log_world: LogWorld) -> None:
    async with login_world(log_world, "/kainite") as seen, chromium() as browser, opened(browser) as watched:
        page, console = watched.page, seen.console
        await page.goto(f"{console.url}app/units?status=failed")
        await expect(page.locator("tbody")).to_contain_text("bad")
        assert page.url == f"{console.url}app/units?status=failed"
        await expect(page.locator(".who")).to_have_text("ada@example.com")
        await expect(page.get_by_role("button", name="Retry …")).to_be_visible()
        (cookie,) = await page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
        await page.get_by_role("button", name="Log out").click()
        await expect(page.locator("main")).to_contain_text("You are logged out.")
        assert await page.context.cookies() == []
        copied = await console.ask("/kainite/app/", Cookie=f"{cookie['name']}={cookie['value']}")
        assert (copied.status, "failed" in copied.text) == (401, False)

        seen.provider.claims = {"email": "eve@example.com", "email_verified": True}
        await page.get_by_role("link", name="Log in").click()
        await expect(page.locator(".who")).to_contain_text("eve@example.com read-only")
        assert [problem for problem in watched.problems if "401" not in problem] == []


async def test_what_the_provider_refuses_is_said(log_world: LogWorld) -> None:
    async with login_world(log_world) as seen, chromium() as browser, opened(browser) as watched:
        seen.provider.error = "access_denied"
        await watched.page.goto(seen.console.url)
        await expect(watched.page.locator("main")).to_contain_text("The provider does not log you in: access_denied.")


async def test_without_a_session_nothing_is_shown_and_nothing_done(log_world: LogWorld) -> None:
    async with login_world(log_world) as seen:
        console = seen.console
        page = await console.ask("/app/units?status=failed")
        assert (page.status, "bad" in page.text) == (401, False)
        assert page.headers["refresh"] == f"0; url=/oidc/login?next={quote('/app/units?status=failed', safe='')}"
        assert "www-authenticate" not in page.headers
        assert (await console.ask("/app/units", HX_Request="true")).text.startswith("kainite: your login is over")
        assert (await console.send("/app/do", {"do": "pause", "sure": "yes"})).status == 401
        assert (await console.ask("/app/", Cookie="kainite-session=made-up")).status == 401
        assert (await console.ask("/app/", Cookie='kainite-session="\\', Authorization="Basic YWRhOng=")).status == 401
        assert log_world.owner.state.operations.all() == []


async def test_a_login_that_another_browser_has_begun_logs_nobody_in(log_world: LogWorld) -> None:
    async with login_world(log_world) as seen:
        begun = await seen.console.ask("/oidc/login?next=/app/")
        state = begun.headers["location"].partition("&state=")[2].partition("&")[0]
        assert state
        assert "HttpOnly" in begun.headers["set-cookie"]
        for cookie in ("", "kainite-login=of-another"):
            answer = await seen.console.ask(f"/oidc/callback?state={state}&code=x", Cookie=cookie)
            assert (answer.status, "another browser has begun it" in answer.text) == (403, True)
        assert "/token" not in seen.provider.told
        own = begun.headers["set-cookie"].partition(";")[0]
        mixed = await seen.console.ask(f"/oidc/callback?state={state}&code=x&iss=https://evil.example", Cookie=own)
        assert "Another provider has answered" in mixed.text
        assert (await seen.console.ask("/oidc/logout")).status == 401
        crossed = await seen.console.ask("/oidc/logout", "POST", {}, Sec_Fetch_Site="cross-site")
        assert crossed.status == 403


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("/app/units?status=failed", "/app/units?status=failed"), ("", "/"), ("https://evil.example/", "/"),
        ("//evil.example/", "/"), ("/\\evil.example/", "/"), ("\\\\evil.example", "/"), ("/app/\nSet-Cookie: x", "/"),
        ("javascript:alert(1)", "/"),
    ],
)  # fmt: skip
def test_a_login_leads_to_a_page_of_the_console_alone(wanted: str, path: str) -> None:
    assert _own_path(wanted) == path
