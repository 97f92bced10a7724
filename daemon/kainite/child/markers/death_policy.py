"""What a worker of the ``markers`` dialect died on, and when it is not tried any more. Pure.

The *request* under way counts: one message, or one batch. All of it is left out, for nobody knows which message of a
batch did it. What is left out is remembered until a checkpoint has passed it; a daemon that starts again, or another
one, remembers nothing and tries again from the checkpoint.

A program that answers nothing at all (it is missing a library, or is not the one that was meant) must not use up the
stream: when ``poisonBatchTries`` children in a row have died before their first answer, nothing more is left out until
one answers.
"""

from __future__ import annotations

from kainite.base.position import Position
from kainite.child.events import Span
from kainite.child.markers.records import LeftOut, leave_out
from kainite.settings import ChildProtocol, ChildSettings, OnDeath


def tries_of(settings: ChildSettings) -> int | None:
    """After how many deaths in a row on one request it is left out; None for never."""
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
    """The requests that are left out."""

    def __init__(self) -> None:
        self._left_out: list[LeftOut] = []
        self._mute = 0  # children in a row that died before they answered anything

    def died(self, span: Span, tries: int, error: Exception, settings: ChildSettings, *, answered: bool) -> bool:
        """A child broke. Whether what it broke on is left out from now on.

        Args:
            span: the request under way.
            tries: how many children in a row broke on it.
            error: how this one did.
            settings: the policy.
            answered: whether this child had answered anything before.
        """
        self._mute = 0 if answered else self._mute + 1
        limit = tries_of(settings)
        if limit is None or tries < limit or self._mute > settings.poison_tries:
            return False
        self._left_out.append(LeftOut(span, f"left out after {tries} tries: {error}"))
        return True

    def begin(self, settings: ChildSettings, position: Position | None) -> None:
        """Another child starts after ``position``: what lies before it, or is not for its protocol, is forgotten."""
        if settings.protocol is not ChildProtocol.MARKERS:
            self._left_out = []
        elif position is not None:
            self._left_out = [entry for entry in self._left_out if entry.span.last > position]

    def mark(self, line: bytes) -> bytes:
        """A batch's line with what is left out of it."""
        return leave_out(line, self._left_out)
