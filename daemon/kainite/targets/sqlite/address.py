"""How a SQLite target is written: ``sqlite:///file``; a relative file starts from the settings file's folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kainite.base.redaction import redacted_url, secrets_in_url
from kainite.settings.kinds.target_kinds import TargetAddress

PREFIX: Final = "sqlite:///"


def path_of(url: str) -> str:
    """Returns the database file that an address names."""
    return url.removeprefix(PREFIX)


def _parse(text: str, folder: Path) -> str:
    return PREFIX + str((folder / path_of(text)).absolute())


def _place(url: str) -> str:
    """Returns the file itself, however its name is spelled, and however many it has."""
    path = path_of(url)
    try:
        found = Path(path).stat()
    except OSError:  # it is not there yet
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


ADDRESS = TargetAddress(_parse, redacted_url, secrets_in_url, _place)
