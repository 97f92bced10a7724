"""Says by which settings PostgreSQL writes and reads the text of values. Pure.

A value goes from a source to a target as text. What the source's output function writes depends on settings that a
server, a database or a role may have, and so does what the target's input function makes of the text: ``$1,000.00`` is
1000 by one ``lc_monetary`` and 1 by another, ``NULL`` in an array is a NULL or a word. So both sessions set all of
them, to one value each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TEXT_FORMS: Final[Mapping[str, str]] = {
    "DateStyle": "ISO,MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",  # fewer than 1 would round
    "bytea_output": "hex",
    "lc_monetary": "C",
    "xmloption": "content",  # takes documents, too
    "array_nulls": "on",
    "quote_all_identifiers": "off",  # names of tables and types, as values
}


def as_options() -> str:
    """Returns the settings as libpq's ``options``."""
    return " ".join(f"-c {name}={value}" for name, value in TEXT_FORMS.items())


def as_local_settings() -> str:
    """Returns expressions of a SELECT that set them until the end of the transaction."""
    return ", ".join(f"set_config('{name}', '{value}', true)" for name, value in TEXT_FORMS.items())
