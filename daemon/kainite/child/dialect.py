"""The interface of a dialect, for the process that speaks it and for the shard's consumer.

A dialect is a state machine without I/O. Its starting methods return the bytes of a request; the bytes that the child
writes go into :meth:`Dialect.receive`; the events that they mean come out of :meth:`Dialect.next_event`.
``ChildSettings.protocol`` names the dialect of a child; :mod:`kainite.child.configured_dialect` makes it.
"""

from __future__ import annotations

from typing import Protocol

from kainite.base.record import Pieces
from kainite.child.events import Action, CheckpointRequested, Event, Span
from kainite.child.turns import Turn


class Dialect(Protocol):
    """One conversation with one child.

    :class:`~kainite.child.json_lines.dialect.JsonLines` and
    :class:`~kainite.child.markers.dialect.MarkersDialect` state the rules.

    Attributes:
        turn: whose turn it is.
        action: the outstanding action, or the last one.
        has_answered: whether the child has answered anything yet; a program that never answered may be the wrong one.
    """

    turn: Turn
    action: Action | None
    has_answered: bool

    @property
    def held(self) -> int:
        """Returns how many bytes of the child's output :meth:`next_event` has not handed out."""
        ...

    @property
    def under_way(self) -> Span | None:
        """Returns the records that the child works on, where they are not all records of the call."""
        ...

    def initialize(self, shard_id: str, sequence: str | None, sub: int | None) -> bytes: ...

    def process_records(self, line: Pieces) -> Pieces:
        """Starts ``processRecords`` with a batch that was rendered for this dialect."""
        ...

    def lease_lost(self) -> bytes: ...

    def shard_ended(self) -> bytes: ...

    def shutdown_requested(self) -> bytes | None:
        """Starts ``shutdownRequested``; starts nothing and returns None where the dialect has no such action."""
        ...

    def reply(self, request: CheckpointRequested, error: str | None = None) -> bytes: ...

    def receive(self, data: bytes) -> None: ...

    def receive_eof(self) -> None: ...

    def next_event(self) -> Event | None: ...
