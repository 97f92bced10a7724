"""Who may look at the console and who may act: each attack, and what is let in."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from kainite.base.address import Address
from kainite.console.access import Access, ConsoleRequest, Login, Refusal, Visitor
from kainite.settings import ConsoleSettings

PEER = "127.0.0.1"


def asked(access: Access, method: str = "GET", peer: str = PEER, **headers: str) -> Any:
    named = {"host": "127.0.0.1:8430", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return access.admit(ConsoleRequest(method, peer, named))


def refused(access: Access, method: str = "GET", peer: str = PEER, **headers: str) -> int | None:
    found = asked(access, method, peer, **headers)
    return found.status if isinstance(found, Refusal) else None


OPEN = Access(ConsoleSettings())


def test_on_loopback_nobody_logs_in_and_everybody_only_looks() -> None:
    assert asked(OPEN) == Visitor("local", may_act=False)
    assert asked(Access(ConsoleSettings(operators=("local",)))) == Visitor("local", may_act=True)


@pytest.mark.parametrize("host", ["127.0.0.1:8430", "localhost:9", "LOCALHOST", "[::1]:8430", "localhost.:1"])
def test_the_names_of_loopback_are_the_consoles(host: str) -> None:
    assert refused(OPEN, host=host) is None


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8430", "127.0.0.1.evil.example", "[::1", "localhost@evil"]
)
def test_another_name_is_refused_as_rebinding_would_bring_it(host: str) -> None:
    assert refused(OPEN, host=host) == 421


def test_a_listener_on_all_addresses_does_not_answer_to_the_wildcard() -> None:
    access = Access(ConsoleSettings(listen=Address("0.0.0.0", 1), hosts=("kainite.example",)))
    assert refused(access, host="0.0.0.0:1") == 421
    assert refused(access, host="kainite.example") is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec_fetch_site": "same-origin", "origin": "http://127.0.0.1:8430"}, None),
        ({"sec_fetch_site": "same-origin"}, None),
        ({"origin": "http://127.0.0.1:8430"}, None),
        ({"origin": "https://127.0.0.1:8430"}, None),  # a proxy before it speaks TLS
        ({}, 403),
        ({"sec_fetch_site": "none"}, 403),
        ({"sec_fetch_site": "cross-site", "origin": "http://127.0.0.1:8430"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin", "origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "http://127.0.0.1:8430.evil.example"}, 403),
    ],
)
def test_only_a_page_of_its_own_may_post(headers: dict[str, str], status: int | None) -> None:
    assert refused(OPEN, "POST", **headers) == status


def test_other_sites_may_link_here_and_not_embed_or_fetch() -> None:
    assert refused(OPEN, sec_fetch_site="cross-site", sec_fetch_mode="navigate") is None
    assert refused(OPEN, sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403
    assert refused(OPEN, sec_fetch_site="same-site", sec_fetch_mode="cors") == 403
    assert refused(OPEN, "DELETE") == 405


PROXIED = Access(ConsoleSettings(proxies=("10.0.0.0/28",), user_header="X-User", operators=("ada",)))


def test_the_proxys_header_counts_from_the_proxy_alone() -> None:
    assert asked(PROXIED, peer="10.0.0.3", x_user="ada") == Visitor("ada", may_act=True)
    assert refused(PROXIED, peer="10.0.0.99", x_user="ada") == 403
    assert refused(PROXIED, peer="127.0.0.1", x_user="ada") == 403
    assert refused(PROXIED, peer="", x_user="ada") == 403


def test_a_header_that_was_sent_twice_names_nobody() -> None:
    assert refused(PROXIED, peer="10.0.0.3", x_user="mallory,ada") == 401
    assert refused(PROXIED, peer="10.0.0.3") == 401


def test_a_login_is_to_be_compared_and_anything_else_is_none() -> None:
    access = Access(ConsoleSettings(users_file=Path("users")))
    right = base64.b64encode("ada:x:ÿ".encode()).decode()
    assert asked(access, authorization=f"Basic {right}") == Login("ada", "x:ÿ")
    for header in (
        "",
        "Basic",
        "Basic !!!",
        "Bearer x",
        f"Basic {base64.b64encode(b'ada').decode()}",
        "Basic /////w==",
    ):
        assert refused(access, authorization=header) == 401, header


def test_who_only_looks_may_not_post_by_hand() -> None:
    request = ConsoleRequest("POST", PEER, {})
    assert OPEN.may(request, Visitor("eve", may_act=False)) == Refusal(
        403, "eve may look and not act: consoleOperators names who may act"
    )
    assert OPEN.may(request, Visitor("ada", may_act=True)) is None
    assert OPEN.may(ConsoleRequest("GET", PEER, {}), Visitor("eve", may_act=False)) is None
