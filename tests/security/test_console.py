"""Attacks on the operator's console, as a process on a log with units of every status."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from kainite.console.secrets import line_of
from support.console_world import ServedConsole, allow, served_console
from support.log_cli import LogWorld, log_world

__all__ = ["log_world"]

RETRY = {"do": "retry", "uow": "bad", "sure": "1", "why": "mended"}
SECRET = "correct horse battery"


@dataclass
class Site:
    """A console that lets ``local`` act, and its log."""

    console: ServedConsole
    world: LogWorld

    def status(self, tid: int = 1) -> str:
        return self.world.owner.state.units[tid].status.value


@pytest.fixture
async def site(log_world: LogWorld) -> AsyncIterator[Site]:
    async with served_console(allow(log_world.properties, consoleOperators="local")) as console:
        yield Site(console, log_world)


def basic(user: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{secret}'.encode()).decode()}"


async def test_another_site_another_name_and_nonsense_change_nothing(site: Site) -> None:
    own = f"http://{site.console.host}"
    for headers in (
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": own, "Sec_Fetch_Site": "cross-site"},
        {"Origin": own, "Sec_Fetch_Site": "same-site"},
        {"Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"},
    ):
        answer = await site.console.ask("/app/do", "POST", RETRY, **headers)
        assert answer.status == 403, headers
    for host in ("evil.example", f"evil.example:{site.console.host.rpartition(':')[2]}", "127.0.0.1.evil.example"):
        assert (await site.console.ask("/app/", Host=host)).status == 421
        assert (await site.console.send("/app/do", RETRY, Host=host, Origin=f"http://{host}")).status == 421
    assert (await site.console.send("/app/do", {"do": "retry", "uow": "x" * 300_000})).status == 413
    assert (await site.console.send("/app/do", {"do": "format"})).status == 409
    assert (await site.console.send("/app/do", {str(number): "x" for number in range(50)})).status == 400
    assert site.status() == "failed"
    assert (await site.console.send("/app/do", RETRY)).status == 200
    assert site.status() == "in progress"


async def test_who_only_looks_sees_no_button_and_is_refused_by_the_server(log_world: LogWorld) -> None:
    async with served_console(log_world.properties) as console:
        page = await console.ask("/app/unit?uow=bad")
        assert "read-only" in page.text
        assert "Retry" not in page.text
        for form in (RETRY, {"do": "retry", "uow": "bad"}, {"do": "pause", "sure": "yes"}):
            answer = await console.send("/app/do", form)
            assert (answer.status, "may look and not act" in answer.text) == (403, True)
    assert log_world.owner.state.units[1].status.value == "failed"


async def test_nobody_looks_without_a_login_where_there_are_users(log_world: LogWorld) -> None:
    users = log_world.properties.parent / "console-users"
    users.write_text(f"{line_of('ada', SECRET)}\n{line_of('eve', SECRET)}\n")
    users.chmod(0o600)
    async with served_console(
        allow(log_world.properties, consoleUsersFile=str(users), consoleOperators="ada")
    ) as console:
        for path in ("/", "/app/", "/app/unit.json?uow=bad", "/static/0.1.0/console.css"):
            answer = await console.ask(path)
            assert (answer.status, "basic" in answer.headers["www-authenticate"].lower()) == (401, True)
        for wrong in (basic("ada", "wrong"), basic("nobody", SECRET), "Bearer x", "Basic AAAA"):
            assert (await console.ask("/app/", Authorization=wrong)).status == 401
        assert (await console.ask("/app/", Authorization=basic("eve", SECRET))).status == 200
        assert (await console.send("/app/do", RETRY, Authorization=basic("eve", SECRET))).status == 403
        assert (await console.send("/app/do", RETRY, Authorization=basic("ada", SECRET))).status == 200
    assert log_world.owner.state.operations.all()[-1].who == "ada"


async def test_a_proxys_header_from_elsewhere_names_nobody(log_world: LogWorld) -> None:
    settings = {"consoleUserHeader": "X-User", "consoleOperators": "ada"}
    async with served_console(allow(log_world.properties, consoleProxies="192.0.2.1", **settings)) as console:
        assert (await console.ask("/app/", X_User="ada")).status == 403
        assert (await console.send("/app/do", RETRY, X_User="ada")).status == 403
    assert log_world.owner.state.units[1].status.value == "failed"


PATHS = (
    "/static/0.1.0/../../../../../../etc/passwd",
    "/static/0.1.0/%2e%2e/%2e%2e/pages.py",
    "/static/0.1.0//etc/passwd",
    "/static/0.1.0/..%2fpages.py",
    "/static/0.1.0/%2fetc%2fpasswd",
    "/static/0.1.0/",
    "/..%2f..%2fetc/passwd",
)
PAGES = ("/app/", "/app/units", "/app/unit?uow=bad", "/app/shards", "/app/apply", "/app/log", "/app/history")


async def test_answers_give_no_other_files_and_bind_the_browser(site: Site) -> None:
    for path in PATHS:
        answer = await site.console.ask(path)
        assert answer.status in (400, 404), path
        assert "root:" not in answer.text
        assert "import" not in answer.text
    for path in (*PAGES, "/app/nothing", "/app/unit.json?uow=bad", "/static/0.1.0/console.js"):
        answer = await site.console.ask(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';"), path
        assert "unsafe" not in policy
        assert (answer.headers["x-frame-options"], answer.headers["x-content-type-options"]) == ("DENY", "nosniff")
        assert "set-cookie" not in answer.headers
        if path in PAGES:
            page = re.sub(r"http://127\.0\.0\.1:[0-9]+", "", answer.text)  # the settings name DynamoDB's
            assert page.count("<script") == page.count('<script src="/static/') == 3, path
            for word in ("<style", " style=", " onclick", "javascript:", "hx-on", "http://", "https://"):
                assert word not in page, (path, word)
    refused = await site.console.ask("/app/", Host="evil.example")
    assert refused.headers["x-frame-options"] == "DENY"


async def test_masked_values_leave_by_no_page(log_world: LogWorld) -> None:
    async with served_console(allow(log_world.properties, consoleValues="masked")) as console:
        page, copied = await console.ask("/app/unit?uow=fresh"), await console.ask("/app/unit.json?uow=fresh")
    assert "number, 1 character" in page.text
    assert ">9<" not in page.text
    assert '"id":9' not in copied.text.replace(" ", "")
