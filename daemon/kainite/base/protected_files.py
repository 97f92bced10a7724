"""Files that only their owner may read: a secret, or a line for each of some users."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kainite.base.errors import SettingsError

T = TypeVar("T")


def read_protected(setting: str, path: Path) -> str:
    """Returns what stands in a file.

    Args:
        setting: the setting that names the file, for messages.
        path: the file.

    Raises:
        SettingsError: the file cannot be read, or other users of the host may read it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{setting} {path} cannot be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{setting} {path} may be read or changed by others: chmod 600 {path}")
    return text


def read_user_lines(setting: str, path: Path, user_of: Callable[[str, str], tuple[str, T]]) -> dict[str, T]:
    """Returns the users in a file, a line each, in the file's order; there may be none.

    Empty lines and lines that begin with ``#`` are passed over.

    Args:
        setting, path: as of :func:`read_protected`.
        user_of: returns the user's name and what stands of it in a line; takes where the line stands, and the line.

    Raises:
        SettingsError: as of :func:`read_protected`, or two lines are of one user.
    """
    users: dict[str, T] = {}
    for number, line in enumerate(read_protected(setting, path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{setting} {path}, line {number}"
        user, known = user_of(where, line.strip())
        if user in users:
            raise SettingsError(f"{where}: user {user} has a line before it")
        users[user] = known
    return users
