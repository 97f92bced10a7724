"""What the console takes from an OpenID Connect provider, and what not; the provider is a small one on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from joserfc.jwk import OctKey, RSAKey

from kainite.base.errors import SettingsError
from kainite.base.redaction import forget
from kainite.console.access import RefusedRequest
from kainite.console.oidc import SKEW_S, OidcProvider
from kainite.console.sessions import PendingLogin, Sessions
from kainite.settings import ConsoleSettings
from support.oidc_provider import CLIENT, SECRET, OidcProviderDouble, oidc_provider


@pytest.fixture
def double() -> Iterator[OidcProviderDouble]:
    """Runs a provider."""
    with oidc_provider() as running:
        yield running
    forget()


def asked(double: OidcProviderDouble, folder: Path, claim: str = "email", **settings: Any) -> OidcProvider:
    secret = folder / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    given: dict[str, Any] = {"oidc_issuer": double.issuer, "oidc_client": CLIENT, "oidc_secret_file": secret} | settings
    return OidcProvider(ConsoleSettings(oidc_redirect="http://127.0.0.1:1/oidc/callback", oidc_claim=claim, **given))


def came_back(provider: OidcProvider, login: PendingLogin) -> str:
    """Returns the code with which a browser comes back."""
    address = provider.address(login)
    assert isinstance(address, str), address
    assert login.verifier not in address
    answer = requests.get(address, allow_redirects=False, timeout=30)
    query = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert query["state"] == [login.state]
    return query["code"][0]


def logged_in(double: OidcProviderDouble, folder: Path, claim: str = "email") -> str | RefusedRequest:
    provider, login = asked(double, folder, claim), Sessions().begin("/")
    return provider.user(login, came_back(provider, login))


def test_a_user_is_who_the_claim_says(double: OidcProviderDouble, tmp_path: Path) -> None:
    assert logged_in(double, tmp_path) == "ada@example.com"
    assert logged_in(double, tmp_path, "sub") == "4711"


def test_the_userinfo_endpoint_is_asked_only_for_a_claim_that_the_token_lacks(
    double: OidcProviderDouble, tmp_path: Path
) -> None:
    double.userinfo = {"email": "grace@example.com", "email_verified": True, "preferred_username": "ada"}
    assert logged_in(double, tmp_path) == "ada@example.com"
    assert "/userinfo" not in double.told
    assert logged_in(double, tmp_path, "preferred_username") == "ada"
    double.claims = {}
    assert logged_in(double, tmp_path) == "grace@example.com"


def test_a_userinfo_endpoint_that_tells_of_another_or_fails_logs_nobody_in(
    double: OidcProviderDouble, tmp_path: Path
) -> None:
    double.claims = {}
    told = {"email": "ada@example.com", "email_verified": True}
    for wrong in ({"sub": "another"}, {"sub": None}):
        double.userinfo = told | wrong
        assert isinstance(logged_in(double, tmp_path), RefusedRequest)
    provider, login = asked(double, tmp_path), Sessions().begin("/")
    code, double.userinfo = came_back(provider, login), None
    assert isinstance(provider.user(login, code), RefusedRequest)


def test_only_users_of_a_group_log_in_where_groups_are_named(double: OidcProviderDouble, tmp_path: Path) -> None:
    def outcome(**claims: Any) -> str | RefusedRequest:
        double.claims = {"email": "ada@example.com", "email_verified": True, **claims}
        provider, login = asked(double, tmp_path, oidc_groups=("support", "oncall")), Sessions().begin("/")
        return provider.user(login, came_back(provider, login))

    assert outcome(groups=["staff", "oncall"]) == "ada@example.com"
    outside = RefusedRequest(403, "ada@example.com is in no group that may look (consoleOidcGroups)")
    assert outcome(groups=["staff"]) == outcome() == outside
    double.userinfo = {"groups": ["support"]}
    assert outcome(groups=["staff"]) == outside
    assert outcome() == "ada@example.com"


NOW = int(time.time())


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "http://127.0.0.1:1"}, {"aud": "another"}, {"aud": [CLIENT, "another"]}, {"azp": "another"},
        {"nonce": "another"}, {"nonce": None}, {"exp": NOW - 2 * SKEW_S}, {"iat": NOW + 3600}, {"exp": None},
        {"at_hash": "AAAA"}, {"sub": None, "iss": None},
    ],
)  # fmt: skip
def test_a_token_for_somebody_or_something_else_logs_nobody_in(
    double: OidcProviderDouble, tmp_path: Path, claims: dict[str, Any]
) -> None:
    double.claims = {**double.claims, **claims}
    refused = logged_in(double, tmp_path)
    assert isinstance(refused, RefusedRequest), refused


@pytest.mark.parametrize(
    "claims",
    [
        {"email_verified": False}, {"email_verified": None}, {"email": ""}, {"email": None}, {"email": ["ada"]},
        {"email": "local"}, {"email": "ada\u202e"}, {"email": "x" * 201},
    ],
)  # fmt: skip
def test_a_claim_that_names_nobody_logs_nobody_in(
    double: OidcProviderDouble, tmp_path: Path, claims: dict[str, Any]
) -> None:
    double.claims = {**double.claims, **claims}
    assert isinstance(logged_in(double, tmp_path), RefusedRequest)


@pytest.mark.parametrize("seconds", [-SKEW_S // 2, SKEW_S // 2])
def test_clocks_may_differ_a_little(double: OidcProviderDouble, tmp_path: Path, seconds: int) -> None:
    now = int(time.time()) + seconds
    double.claims = {**double.claims, "iat": now, "exp": now + 1}
    assert logged_in(double, tmp_path) == "ada@example.com"


def test_a_signature_that_is_not_of_the_providers_key_logs_nobody_in(
    double: OidcProviderDouble, tmp_path: Path
) -> None:
    double.key = RSAKey.generate_key(2048, {"kid": "one"})
    assert isinstance(logged_in(double, tmp_path), RefusedRequest)
    double.key, double.algorithm = OctKey.import_key(SECRET), "HS256"
    assert isinstance(logged_in(double, tmp_path), RefusedRequest)


def test_a_code_is_worth_nothing_without_the_verifier_or_twice(double: OidcProviderDouble, tmp_path: Path) -> None:
    provider, login, other = asked(double, tmp_path), Sessions().begin("/"), Sessions().begin("/")
    code = came_back(provider, login)
    assert isinstance(provider.user(other, code), RefusedRequest)
    code = came_back(provider, login)
    assert provider.user(login, code) == "ada@example.com"
    assert isinstance(provider.user(login, code), RefusedRequest)
    assert isinstance(provider.user(login, "made up"), RefusedRequest)


def test_a_provider_that_is_another_one_or_away_is_told(double: OidcProviderDouble, tmp_path: Path) -> None:
    issuer = double.issuer
    double.issuer = "http://127.0.0.1:1"
    provider = asked(double, tmp_path, oidc_issuer=issuer)
    refused = provider.address(Sessions().begin("/"))
    assert isinstance(refused, RefusedRequest)
    assert refused.status == 503
    assert isinstance(asked(double, tmp_path).address(Sessions().begin("/")), RefusedRequest)


def test_a_secret_that_others_may_read_is_refused(double: OidcProviderDouble, tmp_path: Path) -> None:
    asked(double, tmp_path)
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(SettingsError, match=r"consoleOidcSecretFile .* may be read or changed by others"):
        OidcProvider(ConsoleSettings(oidc_issuer=double.issuer, oidc_secret_file=tmp_path / "secret"))
