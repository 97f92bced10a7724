"""Finds the program of a command when the daemon starts.

A program that is missing at the start is a mistake in the settings and ends the daemon. A program that vanishes later
(a deployment replaces it) is no such mistake: the consumers try to start it, with pauses, until it is back.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kainite.base.errors import SettingsError
from kainite.settings import ChildSettings

SCRIPTS = frozenset({".js", ".mjs", ".php", ".pl", ".py", ".rb", ".sh"})


def find_program(settings: ChildSettings) -> Path:
    """Finds the record processor's program; raises SettingsError, as :func:`find` does."""
    return find(settings.command, "executableName")


def find(command: tuple[str, ...], key: str) -> Path:
    """Finds a command's program on the PATH, or as a path relative to the working folder.

    Args:
        command: the program and its arguments; empty when ``key`` is not set.
        key: the setting that names it.

    Raises:
        SettingsError: there is no such program, or it is not executable.
    """
    if not command:
        raise SettingsError(f"{key} is missing: the command line of the program to run")
    name = command[0]
    if (found := shutil.which(name)) is not None:
        _find_script(command[1:2], key)
        return Path(found)
    if "/" in name and Path(name).is_file():
        raise SettingsError(f"{key}: {name!r} is not executable: chmod +x, or name its interpreter")
    if "/" in name:
        raise SettingsError(f"{key}: there is no program {name!r}, seen from {Path.cwd()}")
    raise SettingsError(f"{key}: there is no program {name!r} on the PATH; install it, or give its path")


def _find_script(first: tuple[str, ...], key: str) -> None:
    """Raises SettingsError for a missing script: its interpreter would start and end at once, again and again."""
    for name in first:
        if Path(name).suffix in SCRIPTS and not Path(name).exists() and shutil.which(name) is None:
            raise SettingsError(f"{key}: there is no file {name!r} to run, seen from {Path.cwd()}")
