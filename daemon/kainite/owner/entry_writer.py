"""The interface of the owner for its parts that append entries of the owner's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kainite.log.format.entry import Entry
from kainite.log.state.folded import FoldedLog


class EntryWriter(Protocol):
    """The owner: its state, and how entries that are decided on it become durable."""

    state: FoldedLog

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        """Appends the entries that ``decide`` returns; returns when these, and all entries before, are durable."""
