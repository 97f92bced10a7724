"""One exposure, and what rights on a file say about others. The only I/O is a look at a file."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Exposure:
    """Something that is exposed.

    Attributes:
        what: what is wrong, in a sentence without a full stop.
        where: the file, the key or the address; without secrets.
        remedy: what to do.
    """

    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.remedy}"


def mode_of(path: Path) -> int:
    """Returns the mode of what a path leads to; 0 where there is nothing, or nothing that may be looked at."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def is_open_to_others(mode: int) -> bool:
    """Returns whether others than a file's owner may read or change it, by its own rights."""
    return bool(mode & (stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH))
