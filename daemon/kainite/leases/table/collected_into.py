"""The note on a lease that says into which log its owner collects units of work.

One attribute of Kainite's own, ``kainiteLog``: a JSON array of the worker that wrote it and the name of its log, as
``TABLE/PARTITION``. A worker with units of work writes it with each take and each renewal, in the same UpdateItem. Who
takes a lease without knowing the attribute (a Java worker) leaves it as it is, so it counts only
while the worker in it owns the lease. Nothing that a lease changes hands by depends on it.
"""

from __future__ import annotations

from typing import Final

import msgspec

COLLECTED_INTO: Final = "kainiteLog"


class LogNote(msgspec.Struct, frozen=True, array_like=True):
    """Who collects into which log.

    Attributes:
        worker: who wrote the note.
        log: the name of its log.
    """

    worker: str
    log: str

    def as_text(self) -> str:
        """Returns the note as the item has it."""
        return msgspec.json.encode(self).decode()


def log_note_of(text: str | None) -> LogNote | None:
    """Returns the note that an item has; None where there is none, or one that this release does not understand."""
    try:
        return None if text is None else msgspec.json.decode(text, type=LogNote)
    except (msgspec.DecodeError, UnicodeError):
        return None
