"""The extractor's side of the E stage (docs/protocol.md, *Markers*): messages of a worker that runs once, or in cycles.

A state machine without I/O::

    plain    ASKED --EOP--> ASKED       messages until the output ends; nothing is asked
    cyclic   IDLE --REQUEST--> ASKED --EOP: CycleDone--> IDLE
    any --Violation--> BROKEN, for good

Each message comes out as soon as it is whole, because a cycle may be longer than memory. The caller decides whether the
messages of an unfinished cycle count.

Decisions on what the original protocol leaves open (docs/protocol.md, *Decisions*): bytes between the last EOM and EOP
are a message. An EOM right after EOP is a line end, and no message. A plain worker may write EOP, which then has no
meaning. Bytes after the last marker of the output are :class:`Unfinished`: nobody knows whether they are whole. The
bytes of EOB and BNC are part of the data. All output that nobody asked for is a violation.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.markers import EXTRACTION, Mark, Markers
from kainite.child.markers.exchange import Violation
from kainite.child.markers.framing import MAX_MESSAGE, MarkedPiece, Scanner

TRY_LATER: Final = os.EX_TEMPFAIL
"""The exit status by which an extractor says that its source is away: 75, as in BSD's sysexits.h."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A message of the worker."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class CycleDone:
    """The requested cycle is over; the next one may be requested."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The output ended within a message; ``payload`` is the part of the message that came."""

    payload: bytes


ExtractionEvent: TypeAlias = Extracted | CycleDone | Unfinished | Violation


class _ExtractionState(Enum):
    IDLE = auto()  # no cycle is requested
    ASKED = auto()  # a cycle is in flight; always, for a plain worker
    BROKEN = auto()


class _ExtractionMove(Enum):
    REQUEST = auto()
    EOP = auto()


_PLAIN: Final = {(_ExtractionState.ASKED, _ExtractionMove.EOP): _ExtractionState.ASKED}
_CYCLIC: Final = {
    (_ExtractionState.IDLE, _ExtractionMove.REQUEST): _ExtractionState.ASKED,
    (_ExtractionState.ASKED, _ExtractionMove.EOP): _ExtractionState.IDLE,
}


class Extraction:
    """One worker's conversation. See the module's docstring.

    Args:
        markers: the markers that both sides use.
        cyclic: whether cycles are requested of the worker.
        max_message: longest message of the worker, bytes.

    Attributes:
        held: how many bytes of the worker's output :meth:`next_event` has not handed out.
    """

    def __init__(self, markers: Markers, *, cyclic: bool, max_message: int = MAX_MESSAGE) -> None:
        self.held = 0
        self._cyclic = cyclic
        self._transitions = _CYCLIC if cyclic else _PLAIN
        self._state = _ExtractionState.IDLE if cyclic else _ExtractionState.ASKED
        self._markers = markers.using(EXTRACTION)
        self._max_message = max_message
        self._scanner = Scanner(self._markers, max_message)
        self._pieces: deque[MarkedPiece] = deque()
        self._residue = b""
        self._after_mark = False  # the last piece ended with EOP

    @property
    def asked(self) -> bool:
        """Returns whether a cycle is in flight; always true for a plain worker that is not broken."""
        return self._state is _ExtractionState.ASKED

    def request(self, payload: bytes = b"") -> bytes:
        """Requests a cycle; returns the bytes to write.

        Raises:
            MessageRefusedError: ``payload`` holds a marker.
            ValueError: a cycle is in flight, or the worker is a plain one.
        """
        if (self._state, _ExtractionMove.REQUEST) not in self._transitions:
            raise ValueError("a cycle cannot be requested now")
        request = self._markers.message(payload)
        self._move(_ExtractionMove.REQUEST)
        return request

    def receive(self, data: bytes) -> None:
        """Takes what the worker wrote, in any chunking."""
        pieces = self._scanner.feed(data)
        self._pieces.extend(pieces)
        self.held += sum(len(piece.payload) + 1 for piece in pieces)

    def receive_eof(self) -> None:
        """Notes that the worker's output has ended; may be called again."""
        self._residue = self._residue or self._scanner.end()

    def next_event(self) -> ExtractionEvent | None:
        """Returns what happened next; None until more input or a request comes."""
        while self._state is not _ExtractionState.BROKEN:
            if self._pieces:
                if (happened := self._read(self._pieces[0])) is not None:
                    return happened
            elif self._scanner.too_long:
                return self._break(f"wrote more than {self._max_message} bytes without a marker")
            elif self._residue:
                residue, self._residue = self._residue, b""
                return Unfinished(residue)
            else:
                return None
        return None

    def _read(self, piece: MarkedPiece) -> ExtractionEvent | None:
        noise = self._after_mark and not piece.payload and piece.mark is Mark.EOM
        if not noise and not self.asked:
            return self._break("wrote while no cycle was requested")
        if piece.payload and piece.mark is Mark.EOP:  # first the message, then its EOP
            self._pieces[0] = MarkedPiece(b"", Mark.EOP)
            self.held -= len(piece.payload)
            return Extracted(piece.payload)
        self._pieces.popleft()
        self.held -= len(piece.payload) + 1
        self._after_mark = piece.mark is Mark.EOP
        if piece.mark is Mark.EOP:
            self._move(_ExtractionMove.EOP)
            return CycleDone() if self._cyclic else None
        return None if noise else Extracted(piece.payload)

    def _move(self, move: _ExtractionMove) -> None:
        self._state = self._transitions[self._state, move]

    def _break(self, reason: str) -> Violation:
        self._state = _ExtractionState.BROKEN
        return Violation(reason)
