"""The console's users: a file of names with hashed secrets (``consoleUsersFile``), a line ``NAME:scrypt:SALT:HASH``."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kainite.base.errors import SettingsError
from kainite.base.protected_files import read_user_lines

NAME: Final = re.compile(r"[A-Za-z0-9._@+-]{1,100}")
LEAST: Final = 12
"""Characters of the shortest secret that is taken."""

_COST: Final = 2**14  # 16 MiB for each try: what OWASP advises at least, with these r and p
_BLOCK: Final = 8
_PARALLEL: Final = 5
_MEMORY: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class HashedSecret:
    """A secret that can be compared, and not read back."""

    salt: bytes
    digest: bytes

    def matches(self, secret: str) -> bool:
        """Tells whether a secret is this one; takes a fifth of a second, on purpose."""
        return hmac.compare_digest(_digest(secret, self.salt), self.digest)


NOBODYS: Final = HashedSecret(bytes(16), bytes(32))
"""Is compared where no user has the name, so that the time does not tell names."""


def line_of(name: str, secret: str) -> str:
    """Returns the line of a new user.

    Raises:
        SettingsError: the name has other characters than letters, digits and ``. _ @ + -``, or the secret is short.
    """
    if NAME.fullmatch(name) is None:
        raise SettingsError(f"{name!r} is no name of a user: letters, digits and . _ @ + - only")
    if len(secret) < LEAST:
        raise SettingsError(f"the secret has fewer than {LEAST} characters")
    salt = secrets.token_bytes(16)
    return ":".join((name, "scrypt", _text(salt), _text(_digest(secret, salt))))


def read_hashed_secrets(path: Path) -> Mapping[str, HashedSecret]:
    """Returns the users in a file.

    Raises:
        SettingsError: as of :func:`~kainite.base.protected_files.read_user_lines`, or a line is of another form.
    """
    users = read_user_lines("consoleUsersFile", path, _user)
    if not users:
        raise SettingsError(f"consoleUsersFile {path} has no user: kainite console --add-user NAME prints a line")
    return users


def _user(where: str, line: str) -> tuple[str, HashedSecret]:
    parts = line.split(":")
    problem = SettingsError(f"{where}: is no line that kainite console --add-user printed")
    if len(parts) != 4 or parts[1] != "scrypt" or NAME.fullmatch(parts[0]) is None:
        raise problem
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[2:])
    except ValueError as error:
        raise problem from error
    return parts[0], HashedSecret(salt, digest)


def _digest(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        secret.encode("utf-8", "surrogatepass"), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL, maxmem=_MEMORY, dklen=32
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
