"""Says what is wrong with lines that are no messages, in the words of who wrote the child. Without I/O.

A child whose messages cannot be read waits for an answer for ever, and so does the daemon. What such lines mean is
guessed here from how they look, for messages only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

_BYTE_ORDER_MARK: Final = "\ufeff"
_SHOWN: Final = 100
_SEQUENCE: Final = {"checkpoint": "json-lines-v0", "sequenceNumber": "json-lines"}
"""The key of a checkpoint's sequence number, and the dialect that spells it so."""


def of_another_form(text: str, own: str) -> str | None:
    """Returns what is wrong with a checkpoint request of the protocol's other form; None for any other line.

    Args:
        text: the line.
        own: the key of a checkpoint's sequence number in the form that is spoken.
    """
    if '"checkpoint"' not in text or (found := _object(text)) is None or found.get("action") != "checkpoint":
        return None
    for key, dialect in _SEQUENCE.items():
        if key != own and key in found:
            return f"asks for a checkpoint with {key!r}, as {dialect} does: set childProtocol={dialect}"
    return None


def why_unreadable(lines: Sequence[str]) -> str:
    """Returns what is wrong with the lines of a child; there is at least one line, and none is a message."""
    first = lines[0]
    if first.startswith(_BYTE_ORDER_MARK):
        return "a byte-order mark stands before its first message: write UTF-8 without one"
    if first.lstrip().startswith(("{", "[")) and _object(first) is None and _object(" ".join(lines)) is not None:
        return "it spreads a message over several lines: write each JSON object on one line"
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"it wrote {first.strip()[:_SHOWN]!r}{more}"


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
