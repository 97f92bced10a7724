"""Who a login is of, by the claims of the id token and of the userinfo endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.console.access import RefusedRequest
from kainite.console.oidc_claims import WantedClaims
from kainite.settings import ConsoleSettings

ADA: dict[str, Any] = {"sub": "1", "email": "ada@example.com", "email_verified": True}
OF_GROUPS = WantedClaims.of(ConsoleSettings(oidc_groups=("support", "oncall")))


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ({"groups": "support"}, {}), ({"groups": ["staff", "oncall"]}, {}), ({}, {"groups": ["support"]}),
        ({"groups": None}, {"groups": ["support"]}),
    ],
)  # fmt: skip
def test_who_is_in_one_of_the_groups_may_look(token: dict[str, Any], told: dict[str, Any]) -> None:
    assert OF_GROUPS.user(ADA | token, told) == "ada@example.com"


@pytest.mark.parametrize(
    "groups", [None, [], "", ["Support"], "support,oncall", ["support2"], {"support": 1}, [["support"]], 7]
)
def test_a_claim_without_one_of_the_groups_lets_nobody_look(groups: Any) -> None:
    assert isinstance(OF_GROUPS.user(ADA | {"groups": groups}, {}), RefusedRequest)
    assert isinstance(OF_GROUPS.user(ADA, {"groups": groups}), RefusedRequest)


def test_the_token_goes_before_the_endpoint() -> None:
    wanted = WantedClaims.of(ConsoleSettings())
    assert not wanted.lacks(ADA)
    assert OF_GROUPS.lacks(ADA)
    assert not OF_GROUPS.lacks(ADA | {"groups": []})
    assert wanted.user(ADA, {"email": "eve@example.com", "email_verified": True}) == "ada@example.com"
    assert isinstance(OF_GROUPS.user(ADA | {"groups": []}, {"groups": ["support"]}), RefusedRequest)


def test_an_address_is_verified_by_whoever_tells_it() -> None:
    wanted = WantedClaims.of(ConsoleSettings())
    unverified = {"email": "eve@example.com"}
    assert isinstance(wanted.user({"sub": "1", "email_verified": True}, unverified), RefusedRequest)
    assert isinstance(wanted.user({"sub": "1", **unverified}, {"email_verified": True}), RefusedRequest)
