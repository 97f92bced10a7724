"""The file of users (``logSecretFile``): who may connect, and what each may do; a line ``user:rights:secret`` each.

Rights are separated by commas (:mod:`kainite.peers.rights`). A secret may have colons. A process that connects is the
file's first user, and its own file need not name others.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from kainite.base.errors import SettingsError
from kainite.base.redaction import learn
from kainite.peers.connection.introduction import Key
from kainite.peers.rights import is_right

TOKEN: Final = "@"
"""Begins the names under which processes connect that have read HEAD; no user of the file has such a name."""


def read_users(path: Path) -> dict[str, Key]:
    """Returns the users in a file, with their keys, in the file's order.

    Empty lines and lines that begin with ``#`` are passed over.

    Raises:
        SettingsError: the file cannot be read, other users of the host may read it, or a line is of another form.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"logSecretFile {path} cannot be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"logSecretFile {path} may be read or changed by others: chmod 600 {path}")
    users: dict[str, Key] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            user, key = _user(f"logSecretFile {path}, line {number}", line)
            if user in users:
                raise SettingsError(f"logSecretFile {path}, line {number}: user {user} has a line before it")
            users[user] = key
    if not users:
        raise SettingsError(f"logSecretFile {path} has no line user:rights:secret")
    learn(key.secret for key in users.values())
    return users


def _user(where: str, line: str) -> tuple[str, Key]:
    user, _, rest = line.strip().partition(":")
    rights, _, secret = rest.partition(":")
    if not (user and rights and secret) or "\0" in line or user.startswith(TOKEN):
        raise SettingsError(f"{where}: is not user:rights:secret, where rights are among {RIGHTS}")
    named = frozenset(right.strip() for right in rights.split(","))
    if unknown := sorted(right for right in named if not is_right(right)):
        raise SettingsError(f"{where}: {unknown[0]!r} is no right; rights are among {RIGHTS}, separated by commas")
    return user, Key(secret, named)


RIGHTS: Final = "daemon, follow, operate, application and application/N"
