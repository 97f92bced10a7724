"""Makes text harmless for whoever displays it: a terminal, a browser's log view, a reader of JSON lines.

Text from outside (a child's output, a cause, a key of a record) may hold control characters. A terminal obeys them:
they move the cursor, hide lines, set the title, and some terminals type what they are told to. Characters that turn the
direction of writing make a text look like another one. Such characters are shown as their escapes, ``\\x1b`` for ESC.

==================================  =====================================
C0 without tab and line feed, DEL   ``\\x00`` … ``\\x1f``, ``\\x7f``
C1                                  ``\\x80`` … ``\\x9f``
directions of writing               U+061C, U+200E, U+200F, U+202A–202E, U+2066–2069
separators of lines                 U+2028, U+2029
byte order mark                     U+FEFF
half of a surrogate pair            U+D800–DFFF; it cannot be encoded at all
==================================  =====================================

In JSON the same characters become JSON's own escapes, so a reader gets the text as it was.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

_OTHERS: Final = "\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_UNSAFE: Final = re.compile(f"[\x00-\x0a{_OTHERS}]")
_UNSAFE_IN_LINES: Final = re.compile(f"[\x00-\x08{_OTHERS}]")


def one_line(text: str) -> str:
    """Returns a text as one line without control characters; tabs and line ends become escapes too."""
    return _UNSAFE.sub(_escape, text)


def lines(text: str) -> str:
    """Returns a text without control characters, but with its tabs and line feeds."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def is_plain(text: str) -> bool:
    """Tells whether a text holds no character that is shown as an escape."""
    return _UNSAFE.search(text) is None


def as_json(value: Any, option: int = 0) -> str:
    """Returns a value as JSON that is harmless and encodable.

    Args:
        value: a value of JSON's kinds; a value of another kind is shown by ``str``.
        option: orjson's options; only ``OPT_INDENT_2`` counts where a text holds half of a surrogate pair.
    """
    try:
        text = orjson.dumps(value, default=str, option=option).decode()
    except TypeError:
        # Half of a surrogate pair, or a number beyond 64 bits.
        indent = 2 if option & orjson.OPT_INDENT_2 else None
        text = json.dumps(value, default=str, ensure_ascii=False, indent=indent)
    # Outside of texts, JSON holds none of these characters but the line feed of an indent.
    return _UNSAFE_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if named is not None:
        return named
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"
