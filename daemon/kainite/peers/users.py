"""The file of users (``logSecretFile``): who may connect, and what each may do; a line ``user:rights:secret`` each.

Rights are separated by commas (:mod:`kainite.peers.rights`). A secret may have colons. A process that connects is the
file's first user, and its own file need not name others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kainite.base.errors import SettingsError
from kainite.base.protected_files import read_user_lines
from kainite.base.redaction import learn
from kainite.peers.connection.introduction import Key
from kainite.peers.rights import is_right

TOKEN: Final = "@"
"""Begins the names under which processes connect that have read HEAD; no user of the file has such a name."""


def read_users(path: Path) -> dict[str, Key]:
    """Returns the users in a file, with their keys, in the file's order.

    Raises:
        SettingsError: as of :func:`~kainite.base.protected_files.read_user_lines`, or a line is of another form.
    """
    users = read_user_lines("logSecretFile", path, _user)
    if not users:
        raise SettingsError(f"logSecretFile {path} has no line user:rights:secret")
    learn(key.secret for key in users.values())
    return users


def _user(where: str, line: str) -> tuple[str, Key]:
    user, _, rest = line.partition(":")
    rights, _, secret = rest.partition(":")
    if not (user and rights and secret) or "\0" in line or user.startswith(TOKEN):
        raise SettingsError(f"{where}: is not user:rights:secret, where rights are among {RIGHTS}")
    named = frozenset(right.strip() for right in rights.split(","))
    if unknown := sorted(right for right in named if not is_right(right)):
        raise SettingsError(f"{where}: {unknown[0]!r} is no right; rights are among {RIGHTS}, separated by commas")
    return user, Key(secret, named)


RIGHTS: Final = "daemon, follow, operate, application and application/N"
