"""Says how values that PostgreSQL has written as text stand in a delta. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

Conversions: TypeAlias = Sequence[tuple[str, Callable[[str], Any]]]
"""The columns whose text is not the value, each with the function that makes a JSON value of it."""

# OIDs of pg_type: bool, int8, int2, int4, oid.
_CONVERSIONS: Final[Mapping[int, Callable[[str], Any]]] = {
    16: "t".__eq__,
    20: int,
    21: int,
    23: int,
    26: int,
}


def conversions(types: Mapping[str, int]) -> Conversions:
    """Returns the conversions of columns, given the OID of each column's type."""
    return [(name, convert) for name, oid in types.items() if (convert := _CONVERSIONS.get(oid)) is not None]


def as_json(values: Mapping[str, str | None], conversions: Conversions) -> dict[str, Any]:
    """Returns PostgreSQL's texts as JSON. Other types stay text, which every target takes for a value of any type.

    Args:
        values: the text of each column, as the type's output function writes it.
        conversions: those of the columns, and perhaps of others.

    Raises:
        ValueError: one is not PostgreSQL's text.
    """
    found: dict[str, Any] = {**values}
    for name, convert in conversions:
        if (text := values.get(name)) is not None:
            found[name] = convert(text)
    return found
