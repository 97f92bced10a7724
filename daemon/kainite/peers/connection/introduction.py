"""Who a peer is: the message of its Hello, and the secrets that the owner knows.

The message is the program's name, alone or with a user and a secret behind it, parted by NUL. It travels in the Hello,
so that it works in every version; beyond loopback only over TLS (:mod:`kainite.settings.loading.consistency`).
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
        name: the program.
        user: empty for none.
        secret: the user's.
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
        secrets: by user; None: everybody may connect.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._digests = None if secrets is None else {user: _digest(secret) for user, secret in secrets.items()}
        self._nobody = os.urandom(32)

    def judge(self, hello: Hello) -> None:
        """Judges a peer's introduction; how long that takes tells nothing about the secrets.

        Raises:
            LogProtocolError: the user is unknown, or the secret is another one.
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
    """Returns the secrets in a file, by user: a line ``user:secret`` each; empty lines and those with ``#`` count not.

    Raises:
        SettingsError: the file cannot be read, others may read it, or a line is something else.
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
