"""One cycle of a cyclic extractor: a state machine without I/O.

::

    BEGUN --Store range--> ASKING --Ask--> LISTENING --EOP--> ANSWERED --Put--> ON_STREAM --Store place--> OVER
                                            |      ^
                                            +-Put--+   when more is held than may be

A cycle stores nothing where the place does not change, and puts nothing where there are no messages. The driver of a
cycle does what :meth:`Cycle.step` returns, and then calls :meth:`Cycle.done`. From ANSWERED on the extractor is not
needed: :mod:`kainite.extract.cycles.delivery` does the rest, while the next cycle may be under way already.

The table says what a crash of Kainite leaves behind in each state. The next run begins a cycle at the stored place:

=============  =======================================================================================================
BEGUN          nothing: a new range is chosen
ASKING         ``time``: the range is stored, and asked for again; nothing is lost, because nothing was asked
LISTENING      the same request is made again; messages that were put early, as too much to hold, are put again
ANSWERED       the same; some or all of the messages are on the stream, and are put again
ON_STREAM      the same; all of the messages are put again
OVER           nothing: the place is stored
=============  =======================================================================================================

So with ``kainite`` and ``time`` every message is on the stream once or more. An extractor that gives the same answer to
the same request repeats its units of work with their ordinals, and the log drops the copies: so each delta counts
exactly once. With ``extractor`` the extractor keeps its offset. It must store the offset when the *next* request comes:
only then is all of the previous answer on the stream. An extractor that stores it earlier loses what was not put before
a crash. The first request to a fresh process says nothing about previous answers.

When the extractor dies, is silent too long or breaks the protocol, the held messages are dropped, and a fresh process
gets the same request. A cycle without early puts then leaves nothing on the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.errors import ChildProtocolError
from kainite.extract.offsets.place import (
    GivenOffset,
    Place,
    SourceLag,
    after_putting,
    before_asking,
    offset_in,
    request_of,
)
from kainite.settings import ExtractOffsets


class CycleState(Enum):
    """The state of a cycle; see the module's table."""

    BEGUN = auto()
    ASKING = auto()
    LISTENING = auto()
    ANSWERED = auto()
    ON_STREAM = auto()
    OVER = auto()


@dataclass(frozen=True, slots=True)
class Store:
    """A step: make the place durable."""

    place: Place


@dataclass(frozen=True, slots=True)
class Ask:
    """A step: send the request."""

    request: bytes


@dataclass(frozen=True, slots=True)
class Listen:
    """A step: report what the extractor writes, with :meth:`Cycle.message` and :meth:`Cycle.end`."""


@dataclass(frozen=True, slots=True)
class PutMessages:
    """A step: put all of these messages on the stream."""

    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """The end of a cycle: no step is left."""


Step: TypeAlias = Store | Ask | Listen | PutMessages | Over

_NEXT: Final[Mapping[CycleState, CycleState]] = {
    CycleState.BEGUN: CycleState.ASKING,
    CycleState.ASKING: CycleState.LISTENING,
    CycleState.LISTENING: CycleState.LISTENING,
    CycleState.ANSWERED: CycleState.ON_STREAM,
    CycleState.ON_STREAM: CycleState.OVER,
    CycleState.OVER: CycleState.OVER,
}


class Cycle:
    """One cycle.

    Args:
        offsets: where the offset is kept.
        place: the place at which the cycle begins: the stored place, or the place that the cycle before gave.
        now: the current time, the end of a new range of time.
        hold_bytes: most bytes of messages that are held until EOP.
        stored: the stored place, where cycles before this one are not on the stream yet; None if all are.

    Attributes:
        place: the place that is stored now, or will be once the cycles before this one are on the stream.
        messages: how many messages the extractor has given.
        held_bytes: the bytes of the messages that are to be put.
        put_early: whether some messages were put before the answer was whole.
    """

    def __init__(
        self, offsets: ExtractOffsets, place: Place, now: datetime, hold_bytes: int, stored: Place | None = None
    ) -> None:
        self.place = place
        self.messages = 0
        self.held_bytes = 0
        self.put_early = False
        self._stored = stored
        self._offsets = offsets
        self._hold_bytes = hold_bytes
        self._held: list[bytes] = []
        self._given: GivenOffset | None = None
        asked = before_asking(offsets, place, now)
        self._stage = CycleState.OVER if asked is None else CycleState.BEGUN
        self._asked = place if asked is None else asked

    @property
    def stage(self) -> CycleState:
        return self._stage

    @property
    def next_place(self) -> Place:
        """Returns the place that is to be stored when all of the answer is on the stream."""
        return after_putting(self._offsets, self.place, self._given)

    @property
    def ahead(self) -> bool:
        """Tells whether the extractor may be asked for the next cycle before this one is on the stream."""
        return self._offsets is ExtractOffsets.KAINITE and self._given is not None and self._given.ahead

    @property
    def lag(self) -> SourceLag | None:
        """Returns how far the source is ahead, where the extractor says it."""
        return None if self._given is None else self._given.lag

    def step(self) -> Step:
        """Returns the next step; it changes with :meth:`done` and, while listening, when the extractor writes."""
        while (step := self._step()) is None:
            self._stage = _NEXT[self._stage]
        return step

    def done(self) -> None:
        """Takes note that the driver has done the step."""
        match self.step():
            case Store(place):
                self.place = place
            case PutMessages() if self._stage is CycleState.LISTENING:
                self.put_early = True
                self._drop_held()
            case PutMessages():
                self._drop_held()
        self._stage = _NEXT[self._stage]

    def message(self, payload: bytes) -> None:
        """Takes a message of the extractor; an empty one is passed over, as an empty line is.

        Raises:
            ChildProtocolError: the message gives an offset that cannot be kept unchanged.
        """
        given = offset_in(payload) if self._offsets is ExtractOffsets.KAINITE else None
        if given is not None:
            self._given = given
        elif payload:
            self.messages += 1
            self._held.append(payload)
            self.held_bytes += len(payload)

    def end(self) -> None:
        """Takes note that the extractor's answer is whole.

        Raises:
            ChildProtocolError: the extractor gave messages and no new offset, so they would come again for ever.
        """
        if self._offsets is ExtractOffsets.KAINITE and self.messages and self._stands_still():
            raise ChildProtocolError(
                f"the extractor gave {self.messages} messages and no new offset: it must give one as"
                ' {"offset":…} before EOP, or the same messages come again'
            )
        self._stage = CycleState.ANSWERED

    def _step(self) -> Step | None:
        """Returns the step of the current state; None where the state has nothing to do."""
        match self._stage:
            case CycleState.BEGUN:
                return self._store(self._asked)
            case CycleState.ASKING:
                return Ask(request_of(self._offsets, self.place, self._stored))
            case CycleState.LISTENING:
                return PutMessages(tuple(self._held)) if self.held_bytes > self._hold_bytes else Listen()
            case CycleState.ANSWERED:
                return PutMessages(tuple(self._held)) if self._held else None
            case CycleState.ON_STREAM:
                return self._store(self.next_place)
            case CycleState.OVER:
                return Over()

    def _store(self, place: Place) -> Store | None:
        return Store(place) if place != self.place else None

    def _stands_still(self) -> bool:
        return self._given is None or self._given.offset == self.place.start

    def _drop_held(self) -> None:
        self._held.clear()
        self.held_bytes = 0
