"""Who a peer is: the introduction in its Hello, judged by the secrets that the owner knows.

An introduction is the program's name, alone or followed by a user and a secret, separated by NUL. It is the message of
the Hello, so that it works in every version. Secrets are allowed beyond loopback only over TLS
(:mod:`kainite.settings.loading.consistency`).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kainite.base.errors import LogProtocolError, SettingsError
from kainite.base.redaction import learn
from kainite.peers.connection.hello import Hello


@dataclass(frozen=True, slots=True)
class Introduction:
    """Who a peer says it is.

    Attributes:
        name: the program's name.
        user: the user's name; empty where the peer names no user.
        secret: the user's secret.
    """

    name: str
    user: str = ""
    secret: str = field(default="", repr=False)

    def as_message(self) -> str:
        return "\0".join((self.name, self.user, self.secret)) if self.user else self.name


def introduction_in(hello: Hello) -> Introduction:
    """Returns who a peer says it is."""
    name, _, rest = (hello.message or "").partition("\0")
    user, _, secret = rest.partition("\0")
    return Introduction(name, user, secret)


class Secrets:
    """The users that may connect, with their secrets.

    Args:
        secrets: each user's secret, by the user's name; None means that everybody may connect.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._digests = None if secrets is None else {user: _digest(secret) for user, secret in secrets.items()}
        self._nobody = os.urandom(32)

    def judge(self, hello: Hello) -> None:
        """Judges a peer's introduction; the time that the comparison takes reveals nothing about the secrets.

        Raises:
            LogProtocolError: the user is unknown, or the secret is wrong.
        """
        if self._digests is None:
            return
        said = introduction_in(hello)
        known = self._digests.get(said.user, self._nobody)
        if not hmac.compare_digest(known, _digest(said.secret)):
            raise LogProtocolError("the peer's user or secret is wrong")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def read_secrets(path: Path) -> dict[str, str]:
    """Returns the secrets in a file by user; each line is ``user:secret``, is empty, or begins with ``#``.

    Raises:
        SettingsError: the file cannot be read, other users may read it, or a line is of another form.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"logSecretFile {path} cannot be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"logSecretFile {path} may be read or changed by others: chmod 600 {path}")
    pairs = [_pair(path, number, line) for number, line in enumerate(lines, 1) if _is_meant(line)]
    if not pairs:
        raise SettingsError(f"logSecretFile {path} has no line user:secret")
    learn(secret for _, secret in pairs)
    return dict(pairs)


def _is_meant(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _pair(path: Path, number: int, line: str) -> tuple[str, str]:
    user, colon, secret = line.strip().partition(":")
    if not (user and colon and secret) or "\0" in line:
        raise SettingsError(f"logSecretFile {path}, line {number}: is not user:secret")
    return user, secret
