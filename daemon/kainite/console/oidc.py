"""What the console asks of the OpenID Connect provider, by Authlib: where users log in, and who has.

The code flow with PKCE. Each login reads the provider's discovery document and its keys anew: logins are rare, and a
key that the provider has withdrawn counts no more. The token is taken from the provider itself over TLS, and its
signature, issuer, audience, nonce and times are checked all the same. What it tells of the user is judged in
:mod:`kainite.console.oidc_claims`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from kainite.base.logs import event
from kainite.base.protected_files import read_protected
from kainite.base.redaction import learn
from kainite.console.access import RefusedRequest
from kainite.console.oidc_claims import WantedClaims
from kainite.console.sessions import PendingLogin
from kainite.settings import ConsoleSettings

logger = logging.getLogger(__name__)

CALL_S: Final = 5.0
SKEW_S: Final = 60
"""Seconds by which the provider's clock and this host's may differ."""

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""Signatures with the provider's key. One by the client's secret, or none, is no signature of the provider."""

_AWAY: Final = "the login's provider does not answer as it should; the console's log says more"
_ERRORS: Final = (requests.RequestException, AuthlibBaseError, JoseError, ValueError, KeyError, TypeError)


class OidcProvider:
    """The provider that the settings name.

    Args:
        settings: the console's, with an issuer.

    Raises:
        SettingsError: the client's secret cannot be read.
    """

    def __init__(self, settings: ConsoleSettings) -> None:
        self._issuer = settings.oidc_issuer or ""
        self._client = settings.oidc_client or ""
        self._redirect = settings.oidc_redirect or ""
        self._wanted, self._scope = WantedClaims.of(settings), settings.oidc_scope
        self._secret: str | None = None
        if settings.oidc_secret_file is not None:
            self._secret = read_protected("consoleOidcSecretFile", settings.oidc_secret_file).strip()
            learn([self._secret])

    @property
    def issuer(self) -> str:
        return self._issuer

    def address(self, login: PendingLogin) -> str | RefusedRequest:
        """Returns where a login goes on, or why it cannot."""
        try:
            with self._session() as session:
                url, _ = session.create_authorization_url(
                    self._metadata(session)["authorization_endpoint"],
                    state=login.state, nonce=login.nonce, code_verifier=login.verifier,
                )  # fmt: skip
        except _ERRORS as error:
            return _refused(RefusedRequest(503, _AWAY), error)
        return str(url)

    def user(self, login: PendingLogin, code: str) -> str | RefusedRequest:
        """Returns who has logged in, or why nobody has.

        Args:
            login: the login, as it was begun.
            code: what the provider gave the browser.
        """
        try:
            with self._session() as session:
                metadata = self._metadata(session)
                token = session.fetch_token(
                    metadata["token_endpoint"], code=code, code_verifier=login.verifier, timeout=CALL_S
                )
                claims = self._claims(session, metadata, token, login)
                told = _userinfo(session, metadata, claims) if self._wanted.lacks(claims) else {}
        except _ERRORS as error:
            return _refused(RefusedRequest(403, "the provider's answer does not log anybody in"), error)
        return self._wanted.user(claims, told)

    def _session(self) -> OAuth2Session:
        method = "client_secret_basic" if self._secret is not None else "none"
        session = OAuth2Session(
            self._client, self._secret, token_endpoint_auth_method=method, scope=self._scope,
            redirect_uri=self._redirect, code_challenge_method="S256", default_timeout=CALL_S,
        )  # fmt: skip
        session.max_redirects = 0
        return session

    def _metadata(self, session: OAuth2Session) -> Mapping[str, Any]:
        """Returns the provider's discovery document."""
        found: Mapping[str, Any] = _json(session, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if found["issuer"] != self._issuer:
            raise ValueError(f"the provider calls itself {found['issuer']!r}, not consoleOidcIssuer")
        plain = urlsplit(self._issuer).scheme == "http"
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
            if name == "userinfo_endpoint" and name not in found:
                continue
            if urlsplit(found[name]).scheme != "https" and not plain:
                raise ValueError(f"the provider's {name} is reached in plain text")
        return found

    def _claims(
        self, session: OAuth2Session, metadata: Mapping[str, Any], token: Mapping[str, Any], login: PendingLogin
    ) -> Mapping[str, Any]:
        keys = KeySet.import_key_set(_json(session, metadata["jwks_uri"]))
        signed = jwt.decode(token["id_token"], keys, algorithms=ALGORITHMS)
        claims = CodeIDToken(
            signed.claims, signed.header,
            {"iss": {"essential": True, "value": self._issuer}, "aud": {"essential": True, "value": self._client}},
            {"nonce": login.nonce, "client_id": self._client, "access_token": token.get("access_token")},
        )  # fmt: skip
        claims.validate(leeway=SKEW_S)
        return dict(claims)


def _userinfo(session: OAuth2Session, metadata: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what the provider tells of the token's user; nothing where it has no endpoint for that."""
    if "userinfo_endpoint" not in metadata:
        return {}
    told: Mapping[str, Any] = _json(session, metadata["userinfo_endpoint"], with_token=True)
    if told["sub"] != claims["sub"]:
        raise ValueError("the userinfo endpoint tells of another user than the token")
    return told


def _json(session: OAuth2Session, url: str, *, with_token: bool = False) -> Any:
    answer = session.get(url, withhold_token=not with_token, timeout=CALL_S, allow_redirects=False)
    answer.raise_for_status()
    return answer.json()


def _refused(refusal: RefusedRequest, error: Exception) -> RefusedRequest:
    event(logger, logging.WARNING, "console login failed", cause=f"{type(error).__name__}: {error}"[:500])
    return refusal
