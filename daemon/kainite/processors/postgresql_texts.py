"""Says how values that PostgreSQL has written as text stand in a delta. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

# OIDs of pg_type: bool, int8, int2, int4, oid.
_CONVERSIONS: Final[Mapping[int, Callable[[str], Any]]] = {
    16: "t".__eq__,
    20: int,
    21: int,
    23: int,
    26: int,
}


def as_json(values: Mapping[str, str | None], types: Mapping[str, int]) -> dict[str, Any]:
    """Returns PostgreSQL's texts as JSON. Other types stay text, which every target takes for a value of any type.

    Args:
        values: the text of each column, as the type's output function writes it.
        types: the OID of each column's type.

    Raises:
        ValueError: one is not PostgreSQL's text.
    """
    return {
        name: text if text is None or (convert := _CONVERSIONS.get(types[name])) is None else convert(text)
        for name, text in values.items()
    }
