"""Credit: how many messages, and how many of their bytes, may be under way at once; no I/O, no clock.

Whoever sends or takes a message takes credit for it, and gives the credit back once the message is answered. A message
that is larger than the whole credit passes while nothing else is under way, so every message passes in the end.

Invariant: the messages under way stay within both bounds, or there is only one message under way.
"""

from __future__ import annotations

from typing import Final

UNBOUNDED: Final = 2**62


class Credit:
    """The messages that may be under way on one connection.

    Args:
        most_bytes: how many bytes may be under way.
        most_messages: how many messages may be under way.
    """

    def __init__(self, most_bytes: int, most_messages: int = UNBOUNDED) -> None:
        self.most_bytes = most_bytes
        self._most_messages = most_messages
        self.bytes = 0
        """How many bytes are under way."""
        self._messages = 0

    def has_room(self, size: int) -> bool:
        """Returns whether a message of so many bytes may be under way now."""
        if self._messages >= self._most_messages:
            return False
        return not self.bytes or self.bytes + size <= self.most_bytes

    def take(self, size: int) -> None:
        """Notes that a message of so many bytes is under way."""
        self._messages += 1
        self.bytes += size

    def give(self, size: int) -> None:
        """Notes that a message of so many bytes is no longer under way."""
        self._messages -= 1
        self.bytes -= size
