"""Whose turn it is in a conversation between daemon and child, whichever dialect they speak.

::

    OURS --START--> THEIRS --STATUS--> OURS
                    THEIRS --CHECKPOINT--> OWED --REPLY--> THEIRS
    any --violation--> BROKEN, for good

One request is outstanding at a time, in either direction.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class Turn(Enum):
    """Whose turn it is."""

    OURS = auto()
    THEIRS = auto()
    OWED = auto()  # the child waits for a reply
    BROKEN = auto()


class TurnMove(Enum):
    """The events that pass the turn on."""

    START = auto()  # the daemon starts an action
    STATUS = auto()  # the child has done it
    CHECKPOINT = auto()  # the child asks for a checkpoint
    REPLY = auto()  # the daemon replies


TURNS: Final = {
    (Turn.OURS, TurnMove.START): Turn.THEIRS,
    (Turn.THEIRS, TurnMove.STATUS): Turn.OURS,
    (Turn.THEIRS, TurnMove.CHECKPOINT): Turn.OWED,
    (Turn.OWED, TurnMove.REPLY): Turn.THEIRS,
}
