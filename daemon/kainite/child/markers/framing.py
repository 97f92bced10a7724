"""Markers: how messages are cut out of a stream of bytes, and put into one.

Seed 000 has four: EOM ends a message, EOP an answer, EOB a batch, and BNC asks for one more message of a
batch. They are bytes of any length that never stand in a message. That is checked here, for the original
checked it nowhere and took one message for two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kainite.errors import MessageRefusedError

MAX_MESSAGE: Final = 64 * 2**20


class Mark(Enum):
    """What a marker says."""

    EOM = auto()  # the message ends here
    EOP = auto()  # worker: the answer ends here
    EOB = auto()  # supervisor: the batch ends here
    BNC = auto()  # worker: one more message, please


@dataclass(frozen=True, slots=True)
class Markers:
    """The bytes of each marker.

    None may be empty, and none may contain another: so at most one marker ends at any byte, and each is known
    by its last byte, without waiting for the next one.

    Raises:
        ValueError: one is empty, or contains another.
    """

    eom: bytes = b"\n"
    eop: bytes = b"\0"
    eob: bytes = b"\x17"
    bnc: bytes = b"\x06"

    def __post_init__(self) -> None:
        spelled = [(mark, self.of(mark)) for mark in Mark]
        for mark, marker in spelled:
            if not marker:
                raise ValueError(f"{mark.name} is empty")
            for other, inner in spelled:
                if other is not mark and inner in marker:
                    relation = "is the same as" if inner == marker else "contains"
                    raise ValueError(f"{mark.name} {relation} {other.name}")

    def of(self, mark: Mark) -> bytes:
        """The bytes of one marker."""
        match mark:
            case Mark.EOM:
                return self.eom
            case Mark.EOP:
                return self.eop
            case Mark.EOB:
                return self.eob
            case Mark.BNC:
                return self.bnc

    def message(self, payload: bytes) -> bytes:
        """The payload and its EOM.

        Raises:
            MessageRefusedError: a marker stands in it, or its end and EOM's beginning would read as one.
        """
        framed = payload + self.eom
        if self.eop in framed or self.eob in framed or self.bnc in framed or framed.find(self.eom) != len(payload):
            found = self.pattern().search(framed)
            assert found is not None
            raise MessageRefusedError(
                f"a message of {len(payload)} bytes holds the marker {self.marks()[found.group()].name}"
                f" at byte {found.start()}: choose markers that never stand in the data"
            )
        return framed

    def pattern(self) -> re.Pattern[bytes]:
        """Finds the marker that ends first: none contains another, so the one that begins first does."""
        return re.compile(b"|".join(re.escape(self.of(mark)) for mark in Mark))

    def marks(self) -> dict[bytes, Mark]:
        """What each marker's bytes say."""
        return {self.of(mark): mark for mark in Mark}


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes since the marker before, and the marker that ends them."""

    payload: bytes
    mark: Mark


class Scanner:
    """Cuts what comes, in any chunking, at the markers.

    A marker is recognised as soon as its last byte is there. What comes out does not depend on how the bytes
    were cut into chunks. At most ``max_message`` bytes, and a marker's, are held.

    Args:
        markers: what to look for.
        max_message: most bytes between two markers.

    Attributes:
        too_long: there were more; nothing comes out any more.
    """

    def __init__(self, markers: Markers, max_message: int = MAX_MESSAGE) -> None:
        self.too_long = False
        self._marks = markers.marks()
        self._pattern = markers.pattern()
        self._overlap = max(map(len, self._marks)) - 1
        self._max_message = max_message
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Piece]:
        """Take the next bytes; return what they finish."""
        if self.too_long:
            return []
        begin, unseen = 0, max(0, len(self._rest) - self._overlap)
        self._rest += data
        pieces: list[Piece] = []
        while (found := self._pattern.search(self._rest, unseen)) is not None and not self.too_long:
            payload = bytes(self._rest[begin : found.start()])
            self.too_long = len(payload) > self._max_message
            if not self.too_long:
                pieces.append(Piece(payload, self._marks[found.group()]))
            begin = unseen = found.end()
        del self._rest[:begin]
        self.too_long = self.too_long or len(self._rest) - self._overlap > self._max_message
        if self.too_long:
            self._rest.clear()
        return pieces

    def end(self) -> bytes:
        """The bytes have ended: what came after the last marker."""
        residue = bytes(self._rest)
        self._rest.clear()
        return residue
