"""Decides when records on which workers of the ``markers`` dialect died are left out. Without I/O.

The *request* in flight counts: one message, or one batch. The whole request is left out, because nobody knows which
message of a batch killed the worker. The policy remembers a request that is left out until a checkpoint has passed it.
A restarted daemon, or another one, remembers nothing and tries the records again from the checkpoint.

A program that answers nothing at all (a library is missing, or it is the wrong program) must not use up the stream:
when ``poisonBatchTries`` children in a row have died before their first answer, no more requests are left out until a
child answers.
"""

from __future__ import annotations

from kainite.base.position import Position
from kainite.base.record import Pieces
from kainite.child.events import Span
from kainite.child.markers.records import LeftOut, leave_out
from kainite.settings import ChildProtocol, ChildSettings, OnDeath


def tries_of(settings: ChildSettings) -> int | None:
    """Returns after how many deaths in a row on one request the request is left out; None for never."""
    match settings.markers.on_death:
        case OnDeath.RETRY:
            return None
        case OnDeath.TRIES:
            return settings.poison_tries
        case OnDeath.ONCE:
            return 2
        case OnDeath.SKIP:
            return 1


class DeathPolicy:
    """The requests of one shard that are left out, and the policy that adds to them."""

    def __init__(self) -> None:
        self._left_out: list[LeftOut] = []
        self._mute = 0  # children in a row that died before they answered anything

    def died(self, span: Span, tries: int, error: Exception, settings: ChildSettings, *, answered: bool) -> bool:
        """Counts a child's death; returns whether the request in flight is left out from now on.

        Args:
            span: the records of the request in flight.
            tries: how many children in a row died on the request.
            error: how the last one died.
            settings: the policy.
            answered: whether the last one had answered anything before.
        """
        self._mute = 0 if answered else self._mute + 1
        limit = tries_of(settings)
        if limit is None or tries < limit or self._mute > settings.poison_tries:
            return False
        self._left_out.append(LeftOut(span, f"left out after {tries} tries: {error}"))
        return True

    def begin(self, settings: ChildSettings, position: Position | None) -> None:
        """Begins another child after ``position``: forgets the requests before it, or all when it speaks no markers."""
        if settings.protocol is not ChildProtocol.MARKERS:
            self._left_out = []
        elif position is not None:
            self._left_out = [entry for entry in self._left_out if entry.span.last > position]

    def mark(self, line: Pieces) -> Pieces:
        """Adds the cause to each record of a rendered batch that is left out."""
        return leave_out(line, self._left_out)
