"""A small OpenID Connect provider on loopback: discovery, keys, the code flow with PKCE, signed tokens, userinfo.

It logs in whoever comes, as the user in ``claims``, without a page. A test changes what it tells.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

CLIENT, SECRET = "kainite", "a secret of the client"


@dataclass
class OidcProviderDouble:
    """The provider.

    Attributes:
        issuer: its address.
        claims: what its tokens say beside what they must say; a test's own ``iss``, ``exp`` … takes its place.
        key: signs the tokens.
        algorithm: of the signatures.
        userinfo: what its userinfo endpoint tells; None where it has none.
        error: what it tells in place of a code; empty: it logs in.
        told: the paths that were asked for.
    """

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=lambda: {"email": "ada@example.com", "email_verified": True})
    key: RSAKey | OctKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    algorithm: str = "RS256"
    userinfo: dict[str, Any] | None = None
    error: str = ""
    told: list[str] = field(default_factory=list)
    _published: Any = None
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _tokens: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._published = KeySet([self.key]).as_dict(private=False)

    def discovery(self) -> dict[str, Any]:
        userinfo = {} if self.userinfo is None else {"userinfo_endpoint": f"{self.issuer}/userinfo"}
        return userinfo | {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def keys(self) -> Any:
        return self._published

    def authorize(self, query: dict[str, str]) -> str:
        """Returns where the browser goes on."""
        assert (query["client_id"], query["response_type"]) == (CLIENT, "code")
        assert query["code_challenge_method"] == "S256"
        back = {"state": query["state"], "iss": self.issuer}
        if self.error:
            return f"{query['redirect_uri']}?{urlencode({**back, 'error': self.error})}"
        code = secrets.token_urlsafe()
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({**back, 'code': code})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Returns the answer to who has a code."""
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if asked is None or challenge.decode().rstrip("=") != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        named = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization != f"Basic {named}" or form["redirect_uri"] != asked["redirect_uri"]:
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": "4711", "iat": now, "exp": now + 300, "nonce": asked["nonce"],
            **self.claims,
        }  # fmt: skip
        signed = jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, self.key, algorithms=[self.algorithm])
        token = secrets.token_urlsafe()
        self._tokens.add(token)
        return 200, {"access_token": token, "token_type": "Bearer", "id_token": signed}

    def user(self, authorization: str) -> tuple[int, dict[str, Any]]:
        """Returns the answer of the userinfo endpoint."""
        if self.userinfo is None or authorization.removeprefix("Bearer ") not in self._tokens:
            return 401, {}
        return 200, {"sub": "4711", **self.userinfo}


@contextmanager
def oidc_provider() -> Iterator[OidcProviderDouble]:
    """Runs a provider."""
    provider = OidcProviderDouble()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_ProviderHandler,), {"provider": provider}))
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _ProviderHandler(BaseHTTPRequestHandler):
    provider: OidcProviderDouble

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.provider.told.append(parts.path)
        match parts.path:
            case "/.well-known/openid-configuration":
                self._json(200, self.provider.discovery())
            case "/keys":
                self._json(200, self.provider.keys())
            case "/userinfo":
                self._json(*self.provider.user(self.headers.get("Authorization", "")))
            case "/authorize":
                self.send_response(302)
                self.send_header("Location", self.provider.authorize(_first(parts.query)))
                self.send_header("Content-Length", "0")
                self.end_headers()
            case _:
                self._json(404, {})

    def do_POST(self) -> None:
        form = _first(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.provider.told.append(self.path)
        self._json(*self.provider.token(form, self.headers.get("Authorization", "")))

    def _json(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def _first(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
