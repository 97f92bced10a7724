"""One connection as a state machine for both of its sides: bytes and messages in, messages and bytes out; no I/O.

The accepting side says Hello at once; the connecting side answers with its own, which proves that it knows its user's
key; the accepting side answers with its proof (:mod:`kainite.peers.connection.introduction`). Then they speak the
highest version that both know. The codec turns messages into bytes (:mod:`kainite.peers.connection.codec`). The caller
passes the time in.

==========  ======================  =========================================================================
state       event                   next
==========  ======================  =========================================================================
GREETING    HELLO                   accepting side: OPEN, if a version is common to both and the peer is let in;
                                    connecting side: PROVING, if a version is common to both
GREETING    GARBAGE, OVERDUE        CLOSED: the peer speaks another protocol, or said no Hello in time
PROVING     PROOF                   OPEN, if the proof is right
PROVING     GARBAGE, OVERDUE        CLOSED: the peer lets this side not in, does not know the key, or is too slow
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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from hmac import compare_digest
from math import inf
from typing import Final, Generic, NamedTuple

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.peers.connection.codec import Codec, M
from kainite.peers.connection.frames import (
    HELLO_VERSION,
    MAX_BODY,
    MESSAGE,
    PROOF,
    Frame,
    FrameDecoder,
    OtherProtocolError,
    encode_frame,
    header,
)
from kainite.peers.connection.hello import Hello, common_version, decode_hello, encode_hello
from kainite.peers.connection.introduction import Door, Guest, Introduction, introducing, named, new_nonce


class ConnectionState(Enum):
    GREETING = auto()
    PROVING = auto()
    OPEN = auto()
    CLOSED = auto()


class ConnectionEvent(Enum):
    HELLO = auto()
    PROOF = auto()
    MESSAGE = auto()
    GARBAGE = auto()
    OVERDUE = auto()


_NEXT: Final[Mapping[tuple[ConnectionState, ConnectionEvent], ConnectionState]] = {
    (ConnectionState.GREETING, ConnectionEvent.HELLO): ConnectionState.OPEN,
    (ConnectionState.GREETING, ConnectionEvent.GARBAGE): ConnectionState.CLOSED,
    (ConnectionState.GREETING, ConnectionEvent.OVERDUE): ConnectionState.CLOSED,
    (ConnectionState.PROVING, ConnectionEvent.PROOF): ConnectionState.OPEN,
    (ConnectionState.PROVING, ConnectionEvent.GARBAGE): ConnectionState.CLOSED,
    (ConnectionState.PROVING, ConnectionEvent.OVERDUE): ConnectionState.CLOSED,
    (ConnectionState.OPEN, ConnectionEvent.MESSAGE): ConnectionState.OPEN,
    (ConnectionState.OPEN, ConnectionEvent.GARBAGE): ConnectionState.CLOSED,
    (ConnectionState.OPEN, ConnectionEvent.OVERDUE): ConnectionState.CLOSED,
}


class Accepting(NamedTuple):
    """The accepting side: its name for people, and who lets peers in."""

    name: str
    door: Door


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a peer's messages and times.

    Attributes:
        body: the length of the longest message, in bytes.
        greeting: seconds in which the peer's Hello, and its proof, must have come.
        request: seconds in which the peer's first message must have come, from the connection's beginning.
        first: the length of the longest message until :meth:`Connection.allow_long` is called; None means ``body``.
        frame: seconds from a frame's first byte to its last, beside those that its length takes at ``rate``.
        rate: bytes a second in which a long frame must come on the average.
        silent: seconds for which a peer may send no byte. Waltz's clients send a frame after 600 s of silence.
        slow: seconds for which a peer may leave sent bytes unread.
        messages: how many messages of a peer may be under way; beyond that, the peer's bytes are not read.
        bytes: how many bytes these messages may have together; one message alone may have more.
    """

    body: int = MAX_BODY
    greeting: float = 5.0
    request: float = inf
    first: int | None = None
    frame: float = 10.0
    rate: float = 1 << 20
    silent: float = 900.0
    slow: float = 300.0
    messages: int = 600
    bytes: int = 8 << 20


class Received(NamedTuple, Generic[M]):
    """A message from the peer, and the number of bytes in its body."""

    message: M
    size: int


class Connection(Generic[M]):
    """One side of a connection.

    Args:
        codec: encodes and decodes the protocol's messages.
        part: as whom this side connects, or how it accepts.
        now: the time in seconds, by any clock that never runs backwards.
        limits: bounds on the peer's messages and times.
    """

    def __init__(
        self, codec: Codec[M], part: Accepting | Introduction, now: float, limits: Limits | None = None
    ) -> None:
        self._codec = codec
        self._part = part
        self._limits = limits or Limits()
        self._decoder = FrameDecoder(codec.hello, self._limits.body)
        self._began = now
        self._heard = now
        self._frame_began: float | None = None
        self._version: int | None = None
        self._has_spoken = False
        self._expected = b""
        self._out: list[bytes] = []
        self._ours = Hello(tuple(sorted(codec.versions)), None)
        self.guest = Guest("")
        """Who the peer is, on the accepting side; known when the state is OPEN."""
        self.state = ConnectionState.GREETING
        if isinstance(part, Accepting):
            self._say_hello(Hello(self._ours.versions, named(part.name, new_nonce())))

    @property
    def version(self) -> int:
        """Returns the version that both sides speak; the state must not be GREETING."""
        assert self._version is not None
        return self._version

    @property
    def buffered(self) -> int:
        """Returns how many received bytes :meth:`next_message` has not returned yet."""
        return self._decoder.buffered

    @property
    def announced(self) -> int:
        """Returns the length of the message that is under way; 0 before its header has come."""
        return self._decoder.announced if self.state is ConnectionState.OPEN else 0

    def allow_long(self) -> None:
        """Takes messages of any length that ``limits`` allow from now on."""
        self._decoder.expect_messages(self.version)

    def goes_on(self, now: float) -> None:
        """Notes that this side reads again; the peer is not to blame for the time in which it did not."""
        self._heard = now
        if self._frame_began is not None:
            self._frame_began = now

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
        if self.state is ConnectionState.PROVING:
            self._check_proof(frame.body)
            return None
        self._enter(ConnectionEvent.MESSAGE)
        if not frame.body:
            return None
        self._has_spoken = True
        return Received(self._codec.decode(frame.version, frame.body), len(frame.body))

    def _greet(self, theirs: Hello) -> None:
        version = common_version(self._codec.versions, theirs.versions)
        if isinstance(self._part, Accepting):
            self._let_in(self._part.door, theirs)
        if version is None:
            raise LogProtocolError(self._why_no_version(theirs))
        self._version = version
        if isinstance(self._part, Introduction):
            hello, self._expected = introducing(self._part, new_nonce(), self._ours, theirs)
            self._say_hello(hello)
            self._decoder.expect_proof()
            self.state = ConnectionState.PROVING
        else:
            self._decoder.expect_messages(version, self._limits.first)
            self._enter(ConnectionEvent.HELLO)

    def _let_in(self, door: Door, theirs: Hello) -> None:
        try:
            self.guest, proof = door.judge(self._ours, theirs)
        except LogProtocolError:
            self._out.append(encode_frame(PROOF, HELLO_VERSION, b""))
            raise
        if proof is not None:
            self._out.append(encode_frame(PROOF, HELLO_VERSION, proof))

    def _check_proof(self, proof: bytes) -> None:
        if not proof:
            raise LogProtocolError(
                "the owner does not let this process in: its key is not the owner's (logSecretFile on both sides;"
                " without it HEAD has the key, and the owner may have changed since)"
            )
        if not compare_digest(proof, self._expected):
            raise LogProtocolError("the peer does not know the key: it is not the log's owner")
        self._decoder.expect_messages(self.version)
        self._enter(ConnectionEvent.PROOF)

    def _say_hello(self, hello: Hello) -> None:
        self._ours = hello
        self._out.append(encode_hello(self._codec.hello, hello))

    def _why_no_version(self, hello: Hello) -> str:
        if not hello.versions:
            return f"the peer refuses the connection: {hello.message}"
        return (
            f"the peer speaks versions {sorted(hello.versions)} of the {self._codec.name}, this side"
            f" {sorted(self._codec.versions)}: upgrade the older one"
        )

    def _refused(self, error: OtherProtocolError) -> LogProtocolError:
        """Returns the error for a peer of another protocol; an accepting side also sends its text to the peer."""
        if isinstance(self._part, Introduction):
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
        if self.state in (ConnectionState.GREETING, ConnectionState.PROVING):
            yield self._began + limits.greeting, f"no Hello within {limits.greeting:g} s"
        elif self.state is ConnectionState.OPEN:
            yield self._heard + limits.silent, f"silent for {limits.silent:g} s"
            if not self._has_spoken:
                yield self._began + limits.request, f"no request within {limits.request:g} s"
        if self._frame_began is not None:
            whole = limits.frame + self.announced / limits.rate
            yield self._frame_began + whole, f"a message is not whole after {whole:g} s"

    def _enter(self, event: ConnectionEvent) -> None:
        self.state = _NEXT.get((self.state, event), ConnectionState.CLOSED)
