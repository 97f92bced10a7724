"""Frames: a connection carries them one after the other, in both directions::

    frame   magic u8 | version i16 | length i32 | body

Integers are big-endian. Three kinds of frame exist: the one Hello of each side (:mod:`kainite.peers.connection.hello`),
whose magic names the protocol (``K`` the peers', ``H`` Waltz's); the one proof of the accepting side (``P``,
:mod:`kainite.peers.connection.introduction`), which is empty where it lets the peer not in; and ``L`` for all others. A
message's frame without a body keeps the connection alive and says nothing else.

The decoder takes bytes as they come and returns whole frames. It refuses a frame by its header, before the body has
come, so it never holds more than one frame of the allowed length and the bytes that came with its end.

=========  =========================================================  ===============================
expects    set by                                                     refuses
=========  =========================================================  ===============================
Hello      the connection's beginning                                 any other magic or version, a body
                                                                      beyond MAX_HELLO; the Hello of the other
                                                                      protocol by an error of its own
proof      :meth:`FrameDecoder.expect_proof`, after the Hello on   any other magic or version, a body beyond
           the connecting side                                        MAX_PROOF
messages   :meth:`FrameDecoder.expect_messages`, after that          any other magic or version, a body
                                                                      beyond the limit
nothing    the first refused frame                                    everything: each call raises
=========  =========================================================  ===============================
"""

from __future__ import annotations

import struct
from typing import Final, NoReturn

from kainite.base.errors import LogProtocolError
from kainite.base.value_class import value_class

WALTZ_HELLO: Final = ord("H")
"""The magic of a Hello of Waltz's protocol."""

PEERS_HELLO: Final = ord("K")
"""The magic of a Hello of the peers' protocol."""

PROOF: Final = ord("P")
"""The magic of the accepting side's proof."""

MESSAGE: Final = ord("L")
_HELLOS: Final = frozenset({WALTZ_HELLO, PEERS_HELLO})
HELLO_VERSION: Final = 0
MAX_HELLO: Final = 4096
"""The length of the longest body of a Hello, in bytes."""

MAX_PROOF: Final = 64
"""The length of the longest body of a proof, in bytes."""

MAX_BODY: Final = 16 << 20
"""The length of the longest body of a message where a caller sets no other limit, in bytes."""

_HEADER: Final = struct.Struct(">Bhi")
HEADER_SIZE: Final = _HEADER.size


@value_class(frozen=True, slots=True)
class Frame:
    """A frame that the peer has sent.

    Attributes:
        magic: the magic of a Hello, or MESSAGE.
        version: the version in which the body is encoded.
        body: empty for a frame that keeps the connection alive.
    """

    magic: int
    version: int
    body: bytes


class OtherProtocolError(LogProtocolError):
    """The peer has sent the Hello of another protocol, whose magic is ``magic``."""

    def __init__(self, magic: int) -> None:
        super().__init__("the peer speaks another protocol")
        self.magic = magic


def header(magic: int, version: int, length: int) -> bytes:
    """Returns the header of a frame whose body has ``length`` bytes."""
    return _HEADER.pack(magic, version, length)


def encode_frame(magic: int, version: int, body: bytes) -> bytes:
    """Returns a frame as bytes."""
    return header(magic, version, len(body)) + body


def keep_alive(version: int) -> bytes:
    """Returns the frame that keeps a connection of this version alive."""
    return encode_frame(MESSAGE, version, b"")


class FrameDecoder:
    """Takes bytes as they come, and returns whole frames.

    Args:
        hello: the magic of the expected Hello.
        limit: the length of the longest allowed body of a message, in bytes.
    """

    def __init__(self, hello: int, limit: int = MAX_BODY) -> None:
        self._limit = limit
        self._expected = (hello, HELLO_VERSION)
        self._longest = MAX_HELLO
        self._buffer = bytearray()
        self._begin = 0
        self._refused: LogProtocolError | None = None

    def expect_messages(self, version: int, longest: int | None = None) -> None:
        """Expects messages of ``version`` from the next frame on; of ``longest`` bytes at most, where that is given."""
        self._expected = (MESSAGE, version)
        self._longest = self._limit if longest is None else longest

    def expect_proof(self) -> None:
        """Expects the accepting side's proof as the next frame."""
        self._expected = (PROOF, HELLO_VERSION)
        self._longest = MAX_PROOF

    @property
    def announced(self) -> int:
        """Returns the length of the body that is under way; 0 before its header has come and been accepted."""
        if self._refused is not None or self.buffered < HEADER_SIZE:
            return 0
        length: int = _HEADER.unpack_from(self._buffer, self._begin)[2]
        return length if 0 <= length <= self._longest else 0

    def receive(self, data: bytes) -> None:
        """Takes bytes from the peer; :meth:`next_frame` returns the frames in them."""
        if self._begin:
            del self._buffer[: self._begin]
            self._begin = 0
        self._buffer += data

    @property
    def buffered(self) -> int:
        """Returns how many bytes wait for the rest of their frame, or for :meth:`next_frame`."""
        return len(self._buffer) - self._begin

    def next_frame(self) -> Frame | None:
        """Returns the next frame; None until more bytes come.

        Raises:
            LogProtocolError: the bytes are not a frame that is expected now; the connection cannot be used any more.
        """
        if self._refused is not None:
            raise self._refused
        if self.buffered < HEADER_SIZE:
            self._check_beginning()
            return None
        magic, version, length = _HEADER.unpack_from(self._buffer, self._begin)
        self._check_header(magic, version, length)
        begin, end = self._begin + HEADER_SIZE, self._begin + HEADER_SIZE + length
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[begin:end])
        self._begin = end
        if end == len(self._buffer):
            self._buffer, self._begin = bytearray(), 0  # a silent peer's last frame takes no memory
        return Frame(magic, version, body)

    def _check_beginning(self) -> None:
        """Refuses a wrong magic by its one byte: a peer of another protocol may never send more."""
        if self.buffered:
            self._check_magic(self._buffer[self._begin])

    def _check_header(self, magic: int, version: int, length: int) -> None:
        self._check_magic(magic)
        if version != self._expected[1]:
            self._refuse(f"a frame is of version {version}")
        if not 0 <= length <= self._longest:
            self._refuse(f"a frame says that its body has {length} bytes, of at most {self._longest}")

    def _check_magic(self, magic: int) -> None:
        expected = self._expected[0]
        if magic == expected:
            return
        if expected in _HELLOS and magic in _HELLOS:
            self._end(OtherProtocolError(magic))
        self._refuse(f"a frame begins with byte {magic}")

    def _refuse(self, what: str) -> None:
        kinds = {MESSAGE: f"a message of version {self._expected[1]}", PROOF: "a proof"}
        kind = kinds.get(self._expected[0], "a Hello")
        self._end(LogProtocolError(f"{what} where {kind} is expected"))

    def _end(self, error: LogProtocolError) -> NoReturn:
        self._buffer.clear()
        self._begin = 0
        self._refused = error
        raise error
