"""The transcript of what Kainite and one child said, and when; long lines and long exchanges are cut. No I/O.

``→`` marks what Kainite wrote, ``←`` what the child wrote, ``!`` its last lines on standard error, ``·`` other events.
Characters that cannot be printed are escaped, markers among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Final

SHOWN: Final = 300
"""The longest line that is shown, in characters; a longer line is cut in its middle."""

KEPT_FIRST: Final = 8
KEPT_LAST: Final = 24


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One line of the transcript; ``at`` is in seconds since the child was started."""

    at: float
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.at:8.3f} {self.mark} {self.text}"


class Transcript:
    """The transcript of one child; only its first and last lines are kept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._first: list[TranscriptLine] = []
        self._last: deque[TranscriptLine] = deque(maxlen=KEPT_LAST)
        self._left_out = 0

    def said(self, data: bytes) -> None:
        self._add_lines("→", data)

    def heard(self, data: bytes) -> None:
        self._add_lines("←", data)

    def happened(self, text: str) -> None:
        self._add("·", text)

    def complained(self, line: str) -> None:
        """Takes a line that the child wrote to its standard error."""
        self._add("!", shown(line.encode()))

    def lines(self) -> tuple[str, ...]:
        """Returns all entries that are kept, a line each."""
        gap = [f"         · {self._left_out} lines left out"] if self._left_out else []
        return tuple(chain(map(str, self._first), gap, map(str, self._last)))

    def last_heard(self) -> str:
        """Returns the last line that the child wrote."""
        entries = chain(reversed(self._last), reversed(self._first))
        return next((entry.text for entry in entries if entry.mark == "←"), "")

    def _add_lines(self, mark: str, data: bytes) -> None:
        lines = data.splitlines() if data.count(b"\n") <= KEPT_LAST else [data]
        for line in filter(None, lines) if any(lines) else [data]:
            self._add(mark, shown(line))

    def _add(self, mark: str, text: str) -> None:
        entry = TranscriptLine(self._clock() - self._began, mark, text)
        if len(self._first) < KEPT_FIRST:
            self._first.append(entry)
            return
        self._left_out += len(self._last) == KEPT_LAST
        self._last.append(entry)


def shown(data: bytes, limit: int = SHOWN) -> str:
    """Returns bytes as text that can be printed anywhere, at most about twice ``limit`` characters."""
    if len(data) > 2 * limit:
        half = limit // 2
        return f"{_text(data[:half])} … {len(data) - 2 * half} bytes … {_text(data[-half:])}"
    return _text(data)


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "backslashreplace"))


def printable(text: str) -> str:
    """Escapes the characters that cannot be printed. XML cannot hold them either."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
