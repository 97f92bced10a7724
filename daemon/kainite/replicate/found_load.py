"""What the ledger of a load in a target says, whatever kind of target it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.replicate.ledger import LoadState
from kainite.replicate.tables import TableName

WAS_CUT_OVER: Final = (
    "the target was cut over, and others may have written in it: no load empties it. kainite replicate cutover --undo"
    " makes it a replica again"
)


class PlacedTable(Protocol):
    """A table that is loaded."""

    @property
    def place(self) -> TableName:
        """Returns its schema and name in the target."""


@dataclass(frozen=True, slots=True)
class FoundLoad:
    """The load of a target, as its ledger has it.

    Attributes:
        generation: the generation of the load.
        state: its state.
        position: the consistent point, a place of the source (:mod:`kainite.capture.places`); None before it is known.
        snapshot: the name of the point's snapshot; None before it is known, and when it is not needed any more.
        source: the source, as ``system identifier/database``.
        began_ms, live_ms, now_ms: when the load began, when it was live (or None), and when the ledger was read; by the
            target's clock, in milliseconds since the epoch.
        copies: whether ranges of rows are left to be copied.
    """

    generation: int
    state: LoadState
    position: int | None
    snapshot: str | None
    source: str | None
    began_ms: int
    live_ms: int | None
    now_ms: int = field(compare=False)
    copies: bool


@dataclass(frozen=True, slots=True)
class CutOverUndone:
    """A cut-over that was taken back.

    Attributes:
        since: how many transactions of the target's server were begun since the cut-over, or are in its binlog since
            then, by whoever wrote and in whatever database. With 0 nobody has written. None where the server does not
            tell.
    """

    since: int | None


def source_name(point: ConsistentPoint) -> str:
    """Returns how the ledger names a source; its timeline may change."""
    return f"{point.source.system}/{point.source.database}"
