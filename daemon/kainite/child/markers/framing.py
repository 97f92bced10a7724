"""Cuts a stream of bytes at the markers (docs/protocol.md, *On the wire*).

EOM ends a message, EOP an answer, EOB a batch, and BNC asks for one more message of a batch. A marker has any length
and never stands in a message: :meth:`kainite.base.markers.Markers.message` checks that before a message is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kainite.base.markers import Mark, Markers

MAX_MESSAGE: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class MarkedPiece:
    """The bytes since the previous marker, and the marker that ends them."""

    payload: bytes
    mark: Mark


class Scanner:
    """Cuts bytes, which come in any chunking, at the markers.

    Recognises a marker as soon as its last byte is there. The pieces do not depend on how the bytes were cut into
    chunks. Holds at most ``max_message`` bytes and the bytes of a marker.

    Args:
        markers: the markers to look for.
        max_message: most bytes between two markers.

    Attributes:
        too_long: whether there were more than ``max_message`` bytes; no more pieces come out then.
    """

    def __init__(self, markers: Markers, max_message: int = MAX_MESSAGE) -> None:
        self.too_long = False
        self._marks = markers.marks()
        self._pattern = markers.pattern()
        self._overlap = max(map(len, self._marks)) - 1
        self._max_message = max_message
        self._rest = bytearray()

    def waits_at(self, texts: Iterable[bytes]) -> bytes | None:
        """Returns the text of ``texts`` that equals all bytes since the last marker; None where no text does."""
        return next((text for text in texts if self._rest == text), None)

    def feed(self, data: bytes) -> list[MarkedPiece]:
        """Takes the next bytes; returns the pieces that they finish."""
        if self.too_long:
            return []
        begin, unseen = 0, max(0, len(self._rest) - self._overlap)
        self._rest += data
        pieces: list[MarkedPiece] = []
        while (found := self._pattern.search(self._rest, unseen)) is not None and not self.too_long:
            payload = bytes(self._rest[begin : found.start()])
            self.too_long = len(payload) > self._max_message
            if not self.too_long:
                pieces.append(MarkedPiece(payload, self._marks[found.group()]))
            begin = unseen = found.end()
        del self._rest[:begin]
        self.too_long = self.too_long or len(self._rest) - self._overlap > self._max_message
        if self.too_long:
            self._rest.clear()
        return pieces

    def end(self) -> bytes:
        """Ends the input; returns the bytes after the last marker."""
        residue = bytes(self._rest)
        self._rest.clear()
        return residue
