"""What a dialect is to the process that speaks it and to the shard's consumer.

A dialect is a state machine without I/O: its starting methods return the bytes of a request, what the
child writes goes into :meth:`Dialect.receive`, and what that means comes out of :meth:`Dialect.next_event`.
Which dialect a child speaks is ``ChildSettings.protocol``; :mod:`kainite.child.configured_dialect` makes it.
"""

from __future__ import annotations

from typing import Protocol

from kainite.child.events import Action, CheckpointRequested, Event, Span, Turn


class Dialect(Protocol):
    """One conversation with one child.

    :class:`~kainite.child.json_lines.dialect.JsonLines` and
    :class:`~kainite.child.markers.dialect.MarkersDialect` say what the rules are.

    Attributes:
        turn: whose move it is.
        action: the outstanding one, or the last one.
        has_answered: whether the child has answered anything yet: one that never did may be no worker at all.
    """

    turn: Turn
    action: Action | None
    has_answered: bool

    @property
    def held(self) -> int:
        """Bytes of the child's output that :meth:`next_event` has not handed out."""
        ...

    @property
    def under_way(self) -> Span | None:
        """The records that the child works on, where that is not all of the call's."""
        ...

    def initialize(self, shard_id: str, sequence: str | None, sub: int | None) -> bytes: ...

    def process_records(self, line: bytes) -> bytes:
        """Start a call with a batch that was rendered for this dialect."""
        ...

    def lease_lost(self) -> bytes: ...

    def shard_ended(self) -> bytes: ...

    def shutdown_requested(self) -> bytes | None:
        """None where the dialect has no such action: then nothing is started."""
        ...

    def reply(self, request: CheckpointRequested, error: str | None = None) -> bytes: ...

    def receive(self, data: bytes) -> None: ...

    def receive_eof(self) -> None: ...

    def next_event(self) -> Event | None: ...
