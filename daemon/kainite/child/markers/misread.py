"""Says why messages of the markers dialect are no JSON, in the words of who wrote the child. Pure."""

from __future__ import annotations

import codecs
import json
from typing import Final

_SHOWN: Final = 100


def why_no_json(message: bytes) -> str:
    """Returns the reason why a message, which is no JSON, is none: a guess from how the message looks."""
    if message.startswith(codecs.BOM_UTF8):
        return "a byte-order mark stands before its first message: write UTF-8 without one"
    before, brace, rest = message.partition(b"{")
    if before.strip() and brace and _is_json(brace + rest):
        return f"text stands before its JSON, a start banner perhaps: {_told(before)}: write it to standard error"
    if not brace:
        return f"no JSON, a start banner perhaps: {_told(message)}: write to standard error what is no message"
    return f"no JSON, does an EOM stand in its payload?: {_told(message)}"


def why_unasked(payload: bytes) -> str:
    """Returns a guess why a child writes before it was ever asked, to be put behind what it wrote; may be empty."""
    if payload.startswith(codecs.BOM_UTF8):
        return ": a byte-order mark: write UTF-8 without one"
    if payload.strip() and not payload.lstrip().startswith(b"{"):
        return ": a start banner perhaps: write it to standard error"
    return ""


def _told(text: bytes) -> str:
    told = repr(text.strip().decode("utf-8", "replace"))
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
