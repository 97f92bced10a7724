"""One connection as a state machine for both of its sides: bytes and messages in, messages and bytes out; no I/O.

Both sides say Hello at once, then speak the highest version that both know. The accepting side also judges the other
side's introduction (:mod:`kainite.peers.connection.introduction`). The codec turns messages into bytes
(:mod:`kainite.peers.connection.codec`). The caller passes the time in.

==========  ======================  =========================================================================
state       event                   next
==========  ======================  =========================================================================
GREETING    HELLO                   OPEN, if a version is common to both and the introduction is accepted
GREETING    GARBAGE, OVERDUE        CLOSED: the peer speaks another protocol, or said no Hello in time
OPEN        MESSAGE                 OPEN; a frame without a body shows only that the peer is alive
OPEN        GARBAGE                 CLOSED; a second Hello is GARBAGE too
OPEN        OVERDUE                 CLOSED: the peer was silent, or in the midst of one frame, for too long
CLOSED      any                     CLOSED; no further bytes are read
==========  ======================  =========================================================================

A peer whose Hello is of the other protocol is at the wrong port: the accepting side answers with a Hello of the peer's
protocol, without versions, whose message says where the peer should connect.

This state ends with the connection. The services that answer the messages say what a cut connection leaves behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from math import inf
from typing import Final, Generic, NamedTuple

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.peers.connection.codec import Codec, M
from kainite.peers.connection.frames import MAX_BODY, MESSAGE, Frame, FrameDecoder, OtherProtocolError, header
from kainite.peers.connection.hello import Hello, common_version, decode_hello, encode_hello


class ConnectionState(Enum):
    GREETING = auto()
    OPEN = auto()
    CLOSED = auto()


class ConnectionEvent(Enum):
    HELLO = auto()
    MESSAGE = auto()
    GARBAGE = auto()
    OVERDUE = auto()


_NEXT: Final[Mapping[tuple[ConnectionState, ConnectionEvent], ConnectionState]] = {
    (ConnectionState.GREETING, ConnectionEvent.HELLO): ConnectionState.OPEN,
    (ConnectionState.GREETING, ConnectionEvent.GARBAGE): ConnectionState.CLOSED,
    (ConnectionState.GREETING, ConnectionEvent.OVERDUE): ConnectionState.CLOSED,
    (ConnectionState.OPEN, ConnectionEvent.MESSAGE): ConnectionState.OPEN,
    (ConnectionState.OPEN, ConnectionEvent.GARBAGE): ConnectionState.CLOSED,
    (ConnectionState.OPEN, ConnectionEvent.OVERDUE): ConnectionState.CLOSED,
}


class Side(Enum):
    CONNECTING = auto()
    ACCEPTING = auto()


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a peer's messages and times.

    Attributes:
        body: the length of the longest message, in bytes.
        greeting: seconds in which the peer's Hello must have come.
        request: seconds in which the peer's first message must have come, from the connection's beginning.
        first: the length of the longest first message, in bytes; None means that it is bounded like any other message.
        frame: seconds from a frame's first byte to its last.
        silent: seconds for which a peer may send no byte. Waltz's clients send a frame after 600 s of silence.
        slow: seconds for which a peer may leave sent bytes unread.
        messages: how many messages of a peer may be under way; beyond that, the peer's bytes are not read.
        bytes: how many bytes these messages may have together; one message alone may have more.
    """

    body: int = MAX_BODY
    greeting: float = 5.0
    request: float = inf
    first: int | None = None
    frame: float = 60.0
    silent: float = 900.0
    slow: float = 300.0
    messages: int = 600
    bytes: int = 8 << 20


class Received(NamedTuple, Generic[M]):
    """A message from the peer, and the number of bytes in its body."""

    message: M
    size: int


Judge = Callable[[Hello], None]
"""Judges the other side's Hello; raises LogProtocolError."""


class Connection(Generic[M]):
    """One side of a connection.

    Args:
        codec: encodes and decodes the protocol's messages.
        side: whether this side connects or accepts.
        now: the time in seconds, by any clock that never runs backwards.
        message: the text in this side's Hello: its name, or its introduction.
        limits: bounds on the peer's messages and times.
        judge: judges the peer's Hello.
    """

    def __init__(
        self,
        codec: Codec[M],
        side: Side,
        now: float,
        message: str,
        limits: Limits | None = None,
        judge: Judge = lambda _: None,
    ) -> None:
        self._codec = codec
        self._side = side
        self._limits = limits or Limits()
        self._judge = judge
        self._decoder = FrameDecoder(codec.hello, self._limits.body)
        self._began = now
        self._heard = now
        self._frame_began: float | None = None
        self._version: int | None = None
        self._has_spoken = False
        self.state = ConnectionState.GREETING
        self._out = [encode_hello(codec.hello, Hello(tuple(sorted(codec.versions)), message))]

    @property
    def version(self) -> int:
        """Returns the version that both sides speak; the state must not be GREETING."""
        assert self._version is not None
        return self._version

    @property
    def buffered(self) -> int:
        """Returns how many received bytes :meth:`next_message` has not returned yet."""
        return self._decoder.buffered

    def receive(self, data: bytes, now: float) -> None:
        """Takes bytes that the peer has sent."""
        self._heard = now
        if self.state is not ConnectionState.CLOSED:
            self._decoder.receive(data)

    def next_message(self, now: float) -> Received[M] | None:
        """Returns the next message; None until more bytes come.

        Raises:
            LogProtocolError: the peer breaks the protocol, or its Hello is refused; the state is CLOSED.
        """
        while self.state is not ConnectionState.CLOSED:
            try:
                frame = self._decoder.next_frame()
                found = None if frame is None else self._taken(frame)
            except LogProtocolError as error:
                self._enter(ConnectionEvent.GARBAGE)
                if isinstance(error, OtherProtocolError):
                    raise self._refused(error) from error
                raise
            if frame is None:
                self._note_frame(now)
                self._heard = now  # a peer's silence counts only while this side reads
                return None
            self._frame_began = None
            if found is not None:
                return found
        return None

    @property
    def deadline(self) -> float:
        """Returns the time at which the peer is overdue if it sends nothing until then."""
        return min((at for at, _ in self._deadlines()), default=inf)

    def overdue(self, now: float) -> str | None:
        """Returns why the peer is overdue, and closes the connection; None while the peer is not overdue.

        Call this only while this side waits for bytes: the peer is not to blame for the time in which this side reads
        none.
        """
        why = next((why for at, why in self._deadlines() if now >= at), None)
        if why is not None:
            self._enter(ConnectionEvent.OVERDUE)
        return why

    def send(self, message: M) -> None:
        """Adds a message to the bytes to send; the state must be OPEN.

        Raises:
            LogRequestError: the version has no form for the message, or the message is longer than ``limits`` allow.
        """
        body = self._codec.encode(self.version, message)
        if len(body) > self._limits.body:
            raise LogRequestError(
                f"a {type(message).__name__} of {len(body)} bytes is larger than the log's owner takes"
                f" ({self._limits.body}): split it"
            )
        self._out += (header(MESSAGE, self.version, len(body)), body)

    def keep_alive(self) -> None:
        """Adds a frame without a body, which shows that this side is alive, to the bytes to send; the state is OPEN."""
        self._out.append(header(MESSAGE, self.version, 0))

    def to_send(self) -> bytes:
        """Returns the bytes to send, and forgets them."""
        if not self._out:
            return b""
        out, self._out = b"".join(self._out), []
        return out

    def _taken(self, frame: Frame) -> Received[M] | None:
        """Takes a frame of the expected kind; returns the message in the frame."""
        if self.state is ConnectionState.GREETING:
            self._greet(decode_hello(frame.body))
            return None
        self._enter(ConnectionEvent.MESSAGE)
        if not frame.body:
            return None
        if not self._has_spoken:
            self._has_spoken = True
            self._decoder.expect_messages(self.version)
        return Received(self._codec.decode(frame.version, frame.body), len(frame.body))

    def _greet(self, hello: Hello) -> None:
        self._judge(hello)
        version = common_version(self._codec.versions, hello.versions)
        if version is None:
            raise LogProtocolError(self._why_no_version(hello))
        self._version = version
        self._decoder.expect_messages(version, self._limits.first)
        self._enter(ConnectionEvent.HELLO)

    def _why_no_version(self, hello: Hello) -> str:
        if not hello.versions:
            return f"the peer refuses the connection: {hello.message}"
        return (
            f"the peer speaks versions {sorted(hello.versions)} of the {self._codec.name}, this side"
            f" {sorted(self._codec.versions)}: upgrade the older one"
        )

    def _refused(self, error: OtherProtocolError) -> LogProtocolError:
        """Returns the error for a peer of another protocol; an accepting side also sends its text to the peer."""
        if self._side is Side.CONNECTING:
            return LogProtocolError(f"the peer does not speak the {self._codec.name}: the address is another port's")
        self._out.append(encode_hello(error.magic, Hello((), self._codec.port)))
        return LogProtocolError(f"the peer does not speak the {self._codec.name}: {self._codec.port}")

    def _note_frame(self, now: float) -> None:
        """Notes when the first byte of the incomplete frame came."""
        if not self._decoder.buffered:
            self._frame_began = None
        elif self._frame_began is None:
            self._frame_began = now

    def _deadlines(self) -> Iterator[tuple[float, str]]:
        """Yields each time at which the peer is overdue, and the reason."""
        limits = self._limits
        if self.state is ConnectionState.GREETING:
            yield self._began + limits.greeting, f"no Hello within {limits.greeting:g} s"
        elif self.state is ConnectionState.OPEN:
            yield self._heard + limits.silent, f"silent for {limits.silent:g} s"
            if not self._has_spoken:
                yield self._began + limits.request, f"no request within {limits.request:g} s"
        if self._frame_began is not None:
            yield self._frame_began + limits.frame, f"a message is not whole after {limits.frame:g} s"

    def _enter(self, event: ConnectionEvent) -> None:
        self.state = _NEXT.get((self.state, event), ConnectionState.CLOSED)
