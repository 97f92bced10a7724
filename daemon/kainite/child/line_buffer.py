"""Turns bytes in any chunking into lines of bounded length.

A line ends at LF, CR or CRLF, as in the ``BufferedReader`` with which KCL reads its children. The content of a line
does not matter here: malformed UTF-8 never moves the end of a line.
"""

from __future__ import annotations

from dataclasses import dataclass

_ENDS = (b"\n", b"\r")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end; ``cut``: it was longer than the limit, and its rest follows or was dropped."""

    text: bytes
    cut: bool = False


class LineBuffer:
    """Collects the pieces of a line; holds at most ``max_line`` bytes of an unfinished line.

    Leaves empty lines out. The lines do not depend on how the bytes were cut into chunks.

    Args:
        max_line: the longest line, bytes.
        in_pieces: hand out a longer line in pieces, cut between characters of UTF-8, instead of dropping its rest.
    """

    __slots__ = ("_dropping", "_in_pieces", "_max_line", "_pieces", "_size")

    def __init__(self, max_line: int, *, in_pieces: bool = False) -> None:
        self._max_line = max_line
        self._in_pieces = in_pieces
        self._pieces: list[bytes] = []
        self._size = 0
        self._dropping = False  # the line was handed out cut, and its end has not come yet

    def feed(self, data: bytes) -> list[Line]:
        """Takes the next bytes; returns the lines that they finish, and a line that has become too long."""
        lines: list[Line] = []
        for piece in data.splitlines(keepends=True):
            if piece.endswith(_ENDS):
                self._add(piece[:-1].rstrip(b"\r"), lines)
                self._finish(lines)
            else:
                self._add(piece, lines)
        return lines

    def end(self) -> list[Line]:
        """Ends the input; returns the last line if its line end is missing."""
        lines: list[Line] = []
        self._finish(lines)
        return lines

    def _add(self, piece: bytes, lines: list[Line]) -> None:
        if self._dropping:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size <= self._max_line:
            return
        text = b"".join(self._pieces)
        self._forget()
        if not self._in_pieces:
            lines.append(Line(text[: self._max_line], cut=True))
            self._dropping = True
            return
        begin = 0
        while len(text) - begin > self._max_line:
            end = _between_characters(text, begin, begin + self._max_line)
            lines.append(Line(text[begin:end], cut=True))
            begin = end
        self._pieces.append(text[begin:])
        self._size = len(text) - begin

    def _finish(self, lines: list[Line]) -> None:
        if text := b"".join(self._pieces):
            lines.append(Line(text))
        self._forget()
        self._dropping = False

    def _forget(self) -> None:
        self._pieces.clear()
        self._size = 0


def _between_characters(text: bytes, begin: int, end: int) -> int:
    """Returns ``end``, or up to three bytes less, so that no character of UTF-8 is cut; always more than ``begin``."""
    for place in range(end, max(begin, end - 4), -1):
        if text[place] & 0xC0 != 0x80:
            return place
    return end
