"""The interface of a protocol for the connection core: how messages become the bodies of frames, and back."""

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
        """Returns the protocol's name, as errors show it."""

    @property
    def port(self) -> str:
        """Returns the text for a peer of another protocol: who connects here, and to which port others connect."""

    @property
    def versions(self) -> Collection[int]:
        """Returns the versions that this side speaks."""

    def encode(self, version: int, message: M) -> bytes:
        """Returns the body of a frame.

        Raises:
            LogRequestError: the version has no such message, or cannot express one of its fields.
        """

    def decode(self, version: int, body: bytes) -> M:
        """Returns the message in a frame's body, which is not empty.

        Raises:
            LogProtocolError: the body holds no message of the version, or more than one.
        """
