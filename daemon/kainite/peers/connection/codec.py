"""What the connection core asks of a protocol: how messages become the bodies of frames, and back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)


class Codec(Protocol[M]):
    """A protocol's messages in all versions that this side speaks; ``M`` is the union of the messages."""

    @property
    def hello(self) -> int:
        """Returns the magic of the protocol's Hello: no two protocols have the same."""

    @property
    def name(self) -> str:
        """Returns what the protocol is called in errors."""

    @property
    def port(self) -> str:
        """Returns who connects to a port of this protocol, and where others connect: a peer of another one is told."""

    @property
    def versions(self) -> Collection[int]:
        """Returns the versions that this side speaks."""

    def encode(self, version: int, message: M) -> bytes:
        """Returns the body of a frame.

        Raises:
            LogRequestError: the version has no such message, or cannot say what is in it.
        """

    def decode(self, version: int, body: bytes) -> M:
        """Returns the message in a frame's body, which is not empty.

        Raises:
            LogProtocolError: the body holds no message of the version, or more than one.
        """
