"""Reads rows from the text that PostgreSQL's COPY gives, as the values that deltas of the same rows would have. Pure.

The conversion is the record processor's own (:mod:`kainite.processors.postgresql_texts`). So a row that is copied, and
one that comes through the stream, reach a target's own conversion as the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kainite.processors.postgresql_texts import as_json, conversions
from kainite.uow.delta import Row

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_CHARACTERS: Final[Mapping[str, str]] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NULL: Final = "\\N"


def copied_rows(block: bytes, types: Mapping[str, int]) -> Iterator[Row]:
    """Yields the rows of a block of whole lines.

    Args:
        block: what ``COPY … TO STDOUT`` gives, in UTF-8.
        types: the columns in their order, each with the OID of its type.
    """
    known, names = conversions(types), tuple(types)
    for line in block.decode().split("\n")[:-1]:
        yield as_json(dict(zip(names, map(_value, line.split("\t")), strict=True)), known)


def _value(text: str) -> str | None:
    if "\\" not in text:
        return text
    return None if text == _NULL else _ESCAPED.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    return _CHARACTERS.get(found[1], found[1])
