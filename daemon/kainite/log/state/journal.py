"""Writes entries one after another, each decided on the state that the entries before it leave."""

from __future__ import annotations

from kainite.log.format.entry import NO_REQUEST, Entry, EntryKind, Meta
from kainite.log.state.folded import FoldedLog
from kainite.uow.packing import Piece
from kainite.uow.touches import NOTHING, Touched


class Journal:
    """Entries decided in one go: each is folded when it is written, so the next decision sees its effect."""

    def __init__(self, state: FoldedLog, now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.entries: list[Entry] = []

    def write(
        self,
        kind: EntryKind,
        meta: Meta,
        touched: Touched = NOTHING,
        piece: Piece | None = None,
        signed: bytes = b"",
        data: bytes = b"",
    ) -> None:
        """Folds an entry and adds it to :attr:`entries`; ``signed`` are the signatures as they came."""
        entry = Entry(kind, meta, touched, data, NO_REQUEST, piece, signed)
        self.state.apply(self.state.next_id, entry, self.now_ms)
        self.entries.append(entry)
