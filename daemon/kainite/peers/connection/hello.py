"""The Hello: each side sends one as soon as they are connected, and waits for the other side's Hello.

::

    body    number of versions i32 | version i16 … | message (a string)

Both sides then speak the highest version that both have named. Without a common version, or after a second Hello, the
connection is closed. A Hello without versions refuses the connection; its message says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kainite.peers.connection.fields import FieldReader, FieldWriter
from kainite.peers.connection.frames import HELLO_VERSION, encode_frame


@dataclass(frozen=True, slots=True)
class Hello:
    """The content of a Hello: what a side says about itself.

    Attributes:
        versions: the versions that the side speaks.
        message: the side's name for people, or its introduction; None from a peer that gives none.
    """

    versions: tuple[int, ...]
    message: str | None


def encode_hello(magic: int, hello: Hello) -> bytes:
    """Returns the frame of a Hello; ``magic`` names the protocol."""
    writer = FieldWriter()
    writer.int32(len(hello.versions))
    for version in hello.versions:
        writer.int16(version)
    writer.text(hello.message)
    return encode_frame(magic, HELLO_VERSION, writer.body())


def decode_hello(body: bytes) -> Hello:
    """Returns the Hello in a frame's body.

    Raises:
        LogProtocolError: the body holds no Hello.
    """
    reader = FieldReader(body)
    versions = tuple(reader.int16() for _ in range(reader.count(2)))
    message = reader.text()
    reader.finish()
    return Hello(versions, message)


def common_version(ours: Iterable[int], theirs: Iterable[int]) -> int | None:
    """Returns the highest version that both sides speak; None when there is none."""
    return max(set(ours) & set(theirs), default=None)
