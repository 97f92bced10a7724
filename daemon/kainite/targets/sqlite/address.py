"""How a SQLite target is written: ``sqlite:///file``; a relative file starts from the settings file's folder. Pure."""

from __future__ import annotations

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


ADDRESS = TargetAddress(_parse, redacted_url, secrets_in_url)
