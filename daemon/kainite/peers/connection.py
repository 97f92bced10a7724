"""One connection of the log's service as a state machine: bytes in, messages out. No I/O; the clock is passed in.

Both sides send a Hello at once, then speak the highest version that both know. The owner's side also judges the other's
introduction (:mod:`kainite.peers.introduction`).

==========  ======================  =========================================================================
state       event                   next
==========  ======================  =========================================================================
GREETING    Hello                   OPEN, if a version is common to both and the introduction is accepted
GREETING    GARBAGE, OVERDUE        CLOSED: the peer speaks something else, or has not said Hello in time
OPEN        MESSAGE                 OPEN; a frame without a body says only that the peer is alive
OPEN        GARBAGE                 CLOSED: also a second Hello
OPEN        OVERDUE                 CLOSED: silent for too long, or too long in the midst of one frame
CLOSED      any                     CLOSED; nothing is read any more
==========  ======================  =========================================================================

Nothing here outlives the connection. What a cut leaves behind is a matter of what the messages asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from kainite.base.errors import LogProtocolError
from kainite.peers.wire.frames import HELLO, MAX_BODY, Frame, FrameDecoder, keep_alive
from kainite.peers.wire.hello import Hello, common_version, decode_hello
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.versions import decode_message, encode_message


class State(Enum):
    GREETING = auto()
    OPEN = auto()
    CLOSED = auto()


class Event(Enum):
    HELLO = auto()
    MESSAGE = auto()
    GARBAGE = auto()
    OVERDUE = auto()


_NEXT: Final[Mapping[tuple[State, Event], State]] = {
    (State.GREETING, Event.HELLO): State.OPEN,
    (State.GREETING, Event.GARBAGE): State.CLOSED,
    (State.GREETING, Event.OVERDUE): State.CLOSED,
    (State.OPEN, Event.MESSAGE): State.OPEN,
    (State.OPEN, Event.GARBAGE): State.CLOSED,
    (State.OPEN, Event.OVERDUE): State.CLOSED,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a peer may take.

    Attributes:
        body: the longest message, bytes.
        greeting: seconds until its Hello has come.
        frame: seconds from a frame's first byte to its last.
        silent: seconds without a byte. Clients of versions 0 to 4 say that they are alive after 600 s.
        slow: seconds for which a peer may not take what is sent to it.
        messages: most messages of a peer that are under way; then no more is read from it.
        bytes: most bytes in these messages, unless it is one message alone.
    """

    body: int = MAX_BODY
    greeting: float = 5.0
    frame: float = 60.0
    silent: float = 900.0
    slow: float = 300.0
    messages: int = 600
    bytes: int = 8 << 20


class Received(NamedTuple):
    """A message that came, and how many bytes its body had."""

    message: Message
    size: int


Judge = Callable[[Hello], None]
"""Judges the other side's Hello; raises LogProtocolError."""


class Connection:
    """One side of a connection.

    Args:
        versions: those that this side speaks.
        now: seconds, by any clock that never runs backwards.
        limits: what the peer may take.
        judge: judges the peer's Hello.
    """

    def __init__(
        self, versions: Collection[int], now: float, limits: Limits | None = None, judge: Judge = lambda _: None
    ) -> None:
        self._versions = versions
        self._limits = limits or Limits()
        self._judge = judge
        self._decoder = FrameDecoder(self._limits.body)
        self._began = now
        self._heard = now
        self._frame_began: float | None = None
        self._version: int | None = None
        self.state = State.GREETING

    @property
    def version(self) -> int:
        """Returns the version that is spoken; not to be asked before OPEN."""
        assert self._version is not None
        return self._version

    @property
    def buffered(self) -> int:
        """Returns how many bytes have come that :meth:`next_message` has not given yet."""
        return self._decoder.buffered

    def receive(self, data: bytes, now: float) -> None:
        """Takes bytes that came."""
        self._heard = now
        if self.state is not State.CLOSED:
            self._decoder.receive(data)

    def offer(self, versions: Collection[int]) -> None:
        """Speaks no other version than these from now on, unless the peer's Hello has come already."""
        self._versions = versions

    def greet(self, now: float) -> None:
        """Takes the peer's Hello, if it is there, and nothing behind it; raises as :meth:`next_message`."""
        if self.state is State.GREETING:
            self._step(now)

    def next_message(self, now: float) -> Received | None:
        """Returns the next message; None until more bytes come.

        Raises:
            LogProtocolError: the peer says what it must not, or its introduction is refused; the state is CLOSED.
        """
        while self.state is not State.CLOSED:
            frame, found = self._step(now)
            if frame is None or found is not None:
                return found
        return None

    def overdue(self, now: float) -> str | None:
        """Returns why the peer takes too long, None while it does not; then the state is CLOSED.

        To be asked while this side waits for bytes: the time in which it takes none is not the peer's.
        """
        why = self._why_overdue(now)
        if why is not None:
            self._enter(Event.OVERDUE)
        return why

    def encode(self, message: Message) -> bytes:
        """Returns a message to the peer as bytes; raises LogRequestError when the version cannot say it."""
        return encode_message(self.version, message)

    def keep_alive(self) -> bytes:
        """Returns the bytes that say that this side is alive."""
        return keep_alive(self.version)

    def _step(self, now: float) -> tuple[Frame | None, Received | None]:
        """Takes one frame, if one is there; returns it, and the message in it."""
        try:
            frame = self._decoder.next_frame()
            found = None if frame is None else self._taken(frame)
        except LogProtocolError:
            self._enter(Event.GARBAGE)
            raise
        if frame is None:
            self._note_frame(now)
            self._heard = now  # silence counts while somebody listens
        else:
            self._frame_began = None
        return frame, found

    def _taken(self, frame: Frame) -> Received | None:
        if frame.magic == HELLO:
            self._greet(decode_hello(frame.body))
            return None
        self._enter(Event.MESSAGE)
        return Received(decode_message(frame.version, frame.body), len(frame.body)) if frame.body else None

    def _greet(self, hello: Hello) -> None:
        version = common_version(self._versions, hello.versions)
        if version is None:
            raise LogProtocolError(
                f"the peer speaks versions {sorted(hello.versions)} of the log's protocol, this side"
                f" {sorted(self._versions)}: upgrade the older one"
            )
        self._judge(hello)
        self._version = version
        self._decoder.expect_messages(version)
        self._enter(Event.HELLO)

    def _note_frame(self, now: float) -> None:
        """Notes when the frame that is not whole yet began."""
        if not self._decoder.buffered:
            self._frame_began = None
        elif self._frame_began is None:
            self._frame_began = now

    def _why_overdue(self, now: float) -> str | None:
        if self.state is State.GREETING and now - self._began > self._limits.greeting:
            return f"no Hello within {self._limits.greeting:g} s"
        if self.state is State.OPEN and now - self._heard > self._limits.silent:
            return f"silent for {self._limits.silent:g} s"
        if self._frame_began is not None and now - self._frame_began > self._limits.frame:
            return f"a message is not whole after {self._limits.frame:g} s"
        return None

    def _enter(self, event: Event) -> None:
        self.state = _NEXT.get((self.state, event), State.CLOSED)
