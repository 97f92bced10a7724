"""Refuses numbers of many digits where a target could not tell them from strings. Pure.

A number that JSON's parsers do not hold becomes the string of its digits (:mod:`kainite.uow.exact_json`). As the value
of a column it is a number again in the target. Within an object or array it would stay a string, which the document did
not have: such a delta is refused, and its child emits the value as its text.
"""

from __future__ import annotations

from collections.abc import Mapping

from kainite.base.errors import DeltaError
from kainite.uow.delta import Json
from kainite.uow.exact_json import Digits

_IMAGES = frozenset({"key", "row", "before"})


def unmarked(item: Mapping[str, Json]) -> dict[str, Json]:
    """Returns a delta with plain strings in the place of numbers that JSON's parsers do not hold.

    Raises:
        DeltaError: such a number stands within an object or array.
    """
    return {name: _image_unmarked(value) if name in _IMAGES else value for name, value in item.items()}


def _image_unmarked(image: Json) -> Json:
    if not isinstance(image, dict):
        return image
    for column, value in image.items():
        if isinstance(value, dict | list) and _has_digits(value):
            raise DeltaError(
                f"column {column!r} has a number of too many digits within an object or array:"
                " emit the value as its text"
            )
    return {column: str(value) if type(value) is Digits else value for column, value in image.items()}


def _has_digits(value: Json) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_digits, value.values() if isinstance(value, dict) else value))
    return type(value) is Digits
