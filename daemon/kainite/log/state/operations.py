"""What people did with the application, and whether applying is paused: the fold of OPERATION entries.

An operation's entry stands in the same batch as the entries that carry the operation out, where the log carries it: a
retry, a discard, numbers that are given up, a pause. So none of them is carried out and not recorded. An operation on
something else (a lease, a duty) is left in the log's inbox as asked before it is carried out, and again with its
outcome afterwards (:mod:`kainite.operations`).

===========  =============================================  ==========================================================
state        left by                                        what a crash leaves
===========  =============================================  ==========================================================
asked        an entry of the same id with another result    the record of an operation of which nobody knows whether
                                                            it was carried out; whoever reads it looks
done         nothing                                        –
refused      nothing: nothing was changed                   –
failed       nothing                                        –
===========  =============================================  ==========================================================

Applying is paused from the latest PAUSE that was carried out to the next RESUME. The pause is an operation of the log:
it outlives every owner and every apply job. The apply job reads it before it selects units, and finishes the
micro-batch that is under way (:mod:`kainite_spark.driver.job`).

The latest :data:`MOST` operations are remembered, each below :data:`MOST_TEXT` characters a text, whatever is asked:
about 2 MB of a snapshot at most. A pause is remembered for as long as it lasts; a request about many units while it is
under way (:mod:`kainite.owner.bulk`), unless there are as many of them: its record says how far it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from kainite.log.format.entry import OperationKind, OperationMeta, OperationResult

MOST: Final = 1_000
"""How many operations are remembered."""

MOST_TEXT: Final = 500
"""The most characters of each text of an operation."""


class DoneOperations:
    """The latest operations, and the pause.

    Args:
        known: operations from a snapshot, oldest first.
        pause: the pause from a snapshot.

    Attributes:
        pause: the operation that has paused applying; None while units are applied.
    """

    def __init__(self, known: Iterable[OperationMeta] = (), pause: OperationMeta | None = None) -> None:
        self._known = {operation.id: operation for operation in known}
        self.pause = pause

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> list[OperationMeta]:
        """Returns the operations, oldest first."""
        return list(self._known.values())

    def find(self, operation_id: str) -> OperationMeta | None:
        """Returns the operation of that id; None when it is not remembered."""
        return self._known.get(operation_id)

    def add(self, operation: OperationMeta) -> None:
        """Takes an operation, or what has become of one."""
        self._known[operation.id] = operation
        while len(self._known) > MOST:
            del self._known[
                next((id_ for id_, one in self._known.items() if not _goes_on(one)), next(iter(self._known)))
            ]
        if operation.result == OperationResult.DONE:
            if operation.what == OperationKind.PAUSE:
                self.pause = operation
            elif operation.what == OperationKind.RESUME:
                self.pause = None


def _goes_on(operation: OperationMeta) -> bool:
    """Tells whether the operation is about many units, and under way."""
    return operation.below > 0 and operation.result == OperationResult.ASKED


def paused_in_words(pause: OperationMeta) -> str:
    """Returns who has paused applying, since when, and why."""
    since = datetime.fromtimestamp(pause.at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return f"paused by {pause.who} since {since}" + (f": {pause.why}" if pause.why else "")


def bounded(operation: OperationMeta) -> OperationMeta:
    """Returns the operation with texts of at most :data:`MOST_TEXT` characters."""
    texts = ("id", "what", "about", "who", "why", "result", "outcome")
    return msgspec.structs.replace(operation, **{name: shortened(getattr(operation, name)) for name in texts})


def shortened(text: str) -> str:
    """Returns a text with at most :data:`MOST_TEXT` characters."""
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"
