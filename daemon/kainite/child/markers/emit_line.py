"""The emit line that a message of a worker becomes, and the message of such a line. Without I/O.

The message stands in the line as the worker wrote it: it need not be JSON, and comes out byte for byte.
"""

from __future__ import annotations

from typing import Final

_BEFORE: Final = b'{"action":"emit","deltas":['
_AFTER: Final = b"]}"


def emit_line(message: bytes) -> bytes:
    """Returns the emit line of a message."""
    return _BEFORE + message + _AFTER


def message_of(line: bytes) -> bytes:
    """Returns the message of a line that :func:`emit_line` made."""
    return line[len(_BEFORE) : -len(_AFTER)]
