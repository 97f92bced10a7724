"""Numbers of things as people say them. Pure."""

from __future__ import annotations


def counted(number: int, word: str = "unit") -> str:
    """Returns a number with its word, which has an s behind it for any number but one: ``1 unit``, ``12,345 units``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def are(number: int) -> str:
    """Returns the verb for so many things: ``is`` for one, ``are`` for any other number."""
    return "is" if number == 1 else "are"
