"""Whether the child's program is there: asked once, when the daemon starts.

A program that is missing then is a mistake in the settings and ends the daemon. One that vanishes later
(a deployment that replaces it) is not: the consumers start it again after a pause until it is back.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kainite.errors import SettingsError
from kainite.settings import ChildSettings


def find_program(settings: ChildSettings) -> Path:
    """Where the program is: on the PATH, or as a path, seen from the working folder.

    Raises:
        SettingsError: there is none, or it may not be run.
    """
    name = settings.command[0]
    if (found := shutil.which(name)) is not None:
        return Path(found)
    if "/" in name and Path(name).is_file():
        raise SettingsError(f"executableName: {name!r} is not executable: chmod +x, or name its interpreter")
    if "/" in name:
        raise SettingsError(f"executableName: there is no program {name!r}, seen from {Path.cwd()}")
    raise SettingsError(f"executableName: there is no program {name!r} on the PATH; install it, or give its path")
