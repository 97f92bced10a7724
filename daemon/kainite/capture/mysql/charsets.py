"""Turns the bytes of texts into characters, as the server itself does.

Character sets of Unicode, and the ASCII characters of most others, are read here. For a set with one byte a character
the server is asked once what each byte stands for. For any other (GBK, Shift JIS …) it is asked for each text that is
not ASCII: Python's tables differ from the server's in some characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kainite.capture.mysql.values import UncarriedError

_CODECS: Final[Mapping[str, str]] = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Charset:
    """A character set.

    Attributes:
        name: the server's name for it.
        single: whether each character is one byte.
    """

    name: str
    single: bool


class Charsets:
    """Reads texts by the numbers of their collations.

    Args:
        of_collations: the character set of each collation's number.
        convert: asked what bytes of a character set are in Unicode; None where they are no characters of it.
        complain: takes a line about a collation that the server does not list.
    """

    def __init__(
        self,
        of_collations: Mapping[int, Charset],
        convert: Callable[[str, bytes], str | None],
        complain: Callable[[str], None],
    ) -> None:
        self._of_collations = of_collations
        self._convert = convert
        self._complain = complain
        self._tables: dict[str, dict[int, str]] = {}
        self._unknown: set[int] = set()

    def text(self, data: bytes, collation: int) -> str:
        """Returns the characters of bytes.

        Raises:
            UncarriedError: the bytes are no text of their character set, or that is not known.
        """
        charset = self._of_collations.get(collation)
        if charset is None:
            raise UncarriedError(self._tell_unknown(collation))
        try:
            if (codec := _CODECS.get(charset.name)) is not None:
                return data.decode(codec)
            if charset.single:
                return data.decode("latin-1").translate(self._table(charset.name))
            return self._converted(charset.name, data)
        except UnicodeDecodeError:
            raise UncarriedError(f"a text is not {charset.name}, its column's character set") from None

    def _table(self, name: str) -> dict[int, str]:
        if name not in self._tables:
            characters = (self._convert(name, bytes([one])) for one in range(256))
            self._tables[name] = {one: text for one, text in enumerate(characters) if text is not None}
        return self._tables[name]

    def _converted(self, name: str, data: bytes) -> str:
        text = data.decode() if data.isascii() and b"\\" not in data and b"~" not in data else self._convert(name, data)
        if text is None:
            raise UncarriedError(f"a text is not {name}, its column's character set")
        return text

    def _tell_unknown(self, collation: int) -> str:
        told = f"the server does not list the collation {collation}"
        if collation not in self._unknown:
            self._unknown.add(collation)
            self._complain(f"{told}: changes with such a text fail their units")
        return told
