"""Writes entries one after another, each decided on the state that the entries before it leave."""

from __future__ import annotations

from kainite.log.format.entry import NO_REQUEST, Entry, EntryKind, Meta
from kainite.log.state.folded import FoldedLog
from kainite.uow.packing import Piece


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
        data: bytes = b"",
        written: frozenset[int] = frozenset(),
        read: frozenset[int] = frozenset(),
        piece: Piece | None = None,
        signed: bytes = b"",
    ) -> None:
        """Folds an entry and adds it to :attr:`entries`; ``signed`` are ``written`` and ``read`` as they came."""
        entry = Entry(kind, meta, written, read, data, NO_REQUEST, piece, signed)
        self.state.apply(self.state.next_id, entry, self.now_ms)
        self.entries.append(entry)
