"""How far the extractor has got, in a file that survives it.

The file is written before the slot's LSN is acknowledged, so it is never behind the slot: what
PostgreSQL may forget stands in the file with the number it was given. A crash before the file is
written leaves the old one: the transactions come again and get the same numbers.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from kainite.errors import SourceError


@dataclass(frozen=True, slots=True)
class Progress:
    """Everything that committed before ``lsn`` is on the stream; ``number`` was the last of it."""

    slot: str
    lsn: int
    number: int


def save(path: Path, progress: Progress) -> None:
    """Replace the file in one step; returns when it is on the disk."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(orjson.dumps(asdict(progress)))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(path: Path, slot: str) -> Progress:
    """Read the file.

    Raises:
        SourceError: it is missing, broken, or another slot's. Going on without it would number
            transactions anew.
    """
    try:
        fields = orjson.loads(path.read_bytes())
        progress = Progress(slot=str(fields["slot"]), lsn=int(fields["lsn"]), number=int(fields["number"]))
    except OSError as error:
        raise SourceError(f"{path}: no state of slot {slot!r} to go on from: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise SourceError(f"{path}: not a state file of the extractor") from None
    if progress.slot != slot:
        raise SourceError(f"{path}: state of slot {progress.slot!r}, not of {slot!r}")
    return progress
