r"""Markers as text: in settings, and in what a worker is told, since neither arguments nor variables may hold NUL.

Printable ASCII stands for itself; beside it ``\n``, ``\r``, ``\t``, ``\0``, ``\xHH`` and ``\\``. Text beyond ASCII
is UTF-8. What :func:`escape` writes is read alike by bash's ``printf %b``, Perl, Python, C and JavaScript.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|[nrt0\\]|)", re.DOTALL)
_NAMED: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
_SHOWN: Final = {ord(value): f"\\{name}" for name, value in _NAMED.items() if name != "0"}
_PRINTABLE: Final = range(0x21, 0x7F)


def unescape(text: str) -> bytes:
    """Returns the bytes that the text spells.

    Raises:
        ValueError: a backslash with something else after it.
    """
    parts: list[bytes] = []
    begin = 0
    for found in _ESCAPE.finditer(text):
        name = found[1]
        if not name:
            raise ValueError(f"{text[found.start() : found.start() + 2]!r} is none of \\n \\r \\t \\0 \\xHH \\\\")
        parts.append(text[begin : found.start()].encode())
        parts.append(_NAMED[name].encode() if name in _NAMED else bytes.fromhex(name[1:]))
        begin = found.end()
    return b"".join([*parts, text[begin:].encode()])


def escape(marker: bytes) -> str:
    """Returns the marker's spelling in printable ASCII without blanks."""
    return "".join(_SHOWN.get(byte) or (chr(byte) if byte in _PRINTABLE else f"\\x{byte:02x}") for byte in marker)
