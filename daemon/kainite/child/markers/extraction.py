"""The supervisor's side of the E stage: messages of a worker that runs once, or cycle by cycle. Without I/O.

::

    plain    messages until the output ends; nothing is asked
    cyclic   request --> messages, EOP: CycleDone --> request --> …

Messages come out as they are there, since a cycle may be longer than memory. Whether those of a cycle that was not
finished count is the caller's matter.

What seed 000 leaves open: EOP with bytes before it and no EOM: they are a message. An EOM right after EOP is a
line's end, and no message. A plain worker may write EOP too; it says nothing. Bytes after the last marker of all are
:class:`Unfinished`: nobody knows whether they are whole. Whatever else comes, or comes unasked, is a violation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.markers import Mark, Markers
from kainite.child.markers.exchange import Violation
from kainite.child.markers.framing import MAX_MESSAGE, Piece, Scanner


@dataclass(frozen=True, slots=True)
class Extracted:
    """A message of the worker."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class CycleDone:
    """The cycle that was requested is over: the next one may be."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The output ended within a message; ``payload`` is what there is of it."""

    payload: bytes


ExtractionEvent: TypeAlias = Extracted | CycleDone | Unfinished | Violation


class Extraction:
    """One worker's conversation. See the module's docstring.

    Args:
        markers: what both sides use.
        cyclic: whether the worker is asked.
        max_message: longest message of the worker, bytes.

    Attributes:
        asked: a cycle is under way; always, for a plain worker.
        held: bytes that the worker wrote and :meth:`next_event` has not handed out.
    """

    def __init__(self, markers: Markers, *, cyclic: bool, max_message: int = MAX_MESSAGE) -> None:
        self.asked = not cyclic
        self.held = 0
        self._cyclic = cyclic
        self._markers = markers
        self._max_message = max_message
        self._scanner = Scanner(markers, max_message)
        self._pieces: deque[Piece] = deque()
        self._residue = b""
        self._after_mark = False  # EOP came last
        self._broken = False

    def request(self, payload: bytes = b"") -> bytes:
        """Ask for a cycle: the bytes to write.

        Raises:
            MessageRefusedError: a marker stands in ``payload``.
            ValueError: a cycle is under way, or the worker is a plain one.
        """
        if self.asked or self._broken:
            raise ValueError("a cycle cannot be requested now")
        request = self._markers.message(payload)
        self.asked = True
        return request

    def receive(self, data: bytes) -> None:
        """Take what the worker wrote, in any chunking."""
        pieces = self._scanner.feed(data)
        self._pieces.extend(pieces)
        self.held += sum(len(piece.payload) + 1 for piece in pieces)

    def receive_eof(self) -> None:
        """The worker's output has ended."""
        self._residue = self._scanner.end()

    def next_event(self) -> ExtractionEvent | None:
        """What happened next, or None when it takes more input, or a request."""
        while not self._broken:
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

    def _read(self, piece: Piece) -> ExtractionEvent | None:
        noise = self._after_mark and not piece.payload and piece.mark is Mark.EOM
        if not noise and not self.asked:
            return self._break("wrote while no cycle was requested")
        if piece.mark not in (Mark.EOM, Mark.EOP):
            return self._break(f"wrote {piece.mark.name}, which has no place in an extraction")
        if piece.payload and piece.mark is Mark.EOP:  # first the message, then its EOP
            self._pieces[0] = Piece(b"", Mark.EOP)
            self.held -= len(piece.payload)
            return Extracted(piece.payload)
        self._pieces.popleft()
        self.held -= len(piece.payload) + 1
        self._after_mark = piece.mark is Mark.EOP
        if piece.mark is Mark.EOP:
            self.asked = not self._cyclic
            return CycleDone() if self._cyclic else None
        return None if noise else Extracted(piece.payload)

    def _break(self, reason: str) -> Violation:
        self._broken = True
        return Violation(reason)
