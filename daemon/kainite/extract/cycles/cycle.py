"""One cycle of a cyclic extractor: a state machine without I/O.

::

    BEGUN --Store range--> ASKING --Ask--> LISTENING --EOP--> ANSWERED --Put--> ON_STREAM --Store place--> OVER
                                            |      ^
                                            +-Put--+   when more is held than may be

Storing is left out where the place does not change, putting where there are no messages. Whoever drives a cycle does
what :meth:`Cycle.step` says, and says :meth:`Cycle.done`.

What a crash of Kainite leaves behind in each state; the next run begins a cycle at the place that is stored:

=============  =======================================================================================================
BEGUN          nothing: a new range is chosen
ASKING         ``time``: the range is stored, and asked for again. Nothing is lost by that: nothing was asked
LISTENING      the same request is made again. What was put already, because it was too much to hold, is put again
ANSWERED       the same; some or all of the messages are on the stream, and are put again
ON_STREAM      the same; all of the messages are put again
OVER           nothing: the place is stored
=============  =======================================================================================================

So with ``kainite`` and ``time`` every message is on the stream once or more. An extractor that gives the same answer to
the same request repeats its units of work with their ordinals, and the log drops what it has: exactly once. With
``extractor`` the place is the extractor's. It must store it when the *next* request comes, which says that all of the
answer before is on the stream; one that stores it earlier loses what was not put before a crash. A fresh process is
told nothing by its first request.

When the extractor dies, is silent too long or breaks the protocol, what is held is dropped, and a fresh process is
asked the same: a cycle that was not put in parts leaves nothing on the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.errors import ChildProtocolError
from kainite.extract.offsets.place import Given, Place, after_putting, before_asking, offset_in, request_of
from kainite.settings import ExtractOffsets


class Stage(Enum):
    """How far the cycle is; see the module's table."""

    BEGUN = auto()
    ASKING = auto()
    LISTENING = auto()
    ANSWERED = auto()
    ON_STREAM = auto()
    OVER = auto()


@dataclass(frozen=True, slots=True)
class Store:
    """Make the place durable."""

    place: Place


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the request."""

    request: bytes


@dataclass(frozen=True, slots=True)
class Listen:
    """Hand on what the extractor says, by :meth:`Cycle.message` and :meth:`Cycle.end`."""


@dataclass(frozen=True, slots=True)
class Put:
    """Put these messages on the stream, all of them."""

    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing is left to do."""


Step: TypeAlias = Store | Ask | Listen | Put | Over

_NEXT: Final[Mapping[Stage, Stage]] = {
    Stage.BEGUN: Stage.ASKING,
    Stage.ASKING: Stage.LISTENING,
    Stage.LISTENING: Stage.LISTENING,
    Stage.ANSWERED: Stage.ON_STREAM,
    Stage.ON_STREAM: Stage.OVER,
    Stage.OVER: Stage.OVER,
}


class Cycle:
    """One cycle.

    Args:
        offsets: who keeps the place.
        place: the stored one.
        now: the clock, for a new range of time.
        hold_bytes: most bytes of messages that are held until EOP.

    Attributes:
        place: the one that is stored now.
        messages: how many the extractor has given.
        put_early: some were put before the answer was whole.
    """

    def __init__(self, offsets: ExtractOffsets, place: Place, now: datetime, hold_bytes: int) -> None:
        self.place = place
        self.messages = 0
        self.put_early = False
        self._offsets = offsets
        self._hold_bytes = hold_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._given: Given | None = None
        asked = before_asking(offsets, place, now)
        self._stage = Stage.OVER if asked is None else Stage.BEGUN
        self._asked = place if asked is None else asked

    @property
    def stage(self) -> Stage:
        return self._stage

    def step(self) -> Step:
        """What is to be done now; the same again until :meth:`done`, or while listening until something was said."""
        while (step := self._step()) is None:
            self._stage = _NEXT[self._stage]
        return step

    def done(self) -> None:
        """What :meth:`step` said has been done."""
        match self.step():
            case Store(place):
                self.place = place
            case Put() if self._stage is Stage.LISTENING:
                self.put_early = True
                self._drop_held()
            case Put():
                self._drop_held()
        self._stage = _NEXT[self._stage]

    def message(self, payload: bytes) -> None:
        """The extractor gave a message. One without content counts for nothing, as an empty line does.

        Raises:
            ChildProtocolError: it gave an offset that cannot be kept as it is.
        """
        given = offset_in(payload) if self._offsets is ExtractOffsets.KAINITE else None
        if given is not None:
            self._given = given
        elif payload:
            self.messages += 1
            self._held.append(payload)
            self._held_bytes += len(payload)

    def end(self) -> None:
        """The extractor's answer is whole.

        Raises:
            ChildProtocolError: it gave messages and no new offset, so they would come again for ever.
        """
        if self._offsets is ExtractOffsets.KAINITE and self.messages and self._stands_still():
            raise ChildProtocolError(
                f"the extractor gave {self.messages} messages and no new offset: it must give one as"
                ' {"offset":…} before EOP, or the same messages come again'
            )
        self._stage = Stage.ANSWERED

    def _step(self) -> Step | None:
        """None where there is nothing to do in this state."""
        match self._stage:
            case Stage.BEGUN:
                return self._store(self._asked)
            case Stage.ASKING:
                return Ask(request_of(self._offsets, self.place))
            case Stage.LISTENING:
                return Put(tuple(self._held)) if self._held_bytes > self._hold_bytes else Listen()
            case Stage.ANSWERED:
                return Put(tuple(self._held)) if self._held else None
            case Stage.ON_STREAM:
                return self._store(after_putting(self._offsets, self.place, self._given))
            case Stage.OVER:
                return Over()

    def _store(self, place: Place) -> Store | None:
        return Store(place) if place != self.place else None

    def _stands_still(self) -> bool:
        return self._given is None or self._given.offset == self.place.start

    def _drop_held(self) -> None:
        self._held.clear()
        self._held_bytes = 0
