"""The families of MariaDB's and MySQL's types: how a column's values are spelled before keys are compared. Pure.

The default collations ignore case and accents, so that ``'a'``, ``'A'`` and ``'ä'`` are one key. Where a collation is
not known character by character (:mod:`kainite.uow.collations`), the family is opaque: units that touch the table wait
for each other, and nothing wrong is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kainite.uow.catalogue.tables import TypeFamily

_FAMILIES: Final[Mapping[str, TypeFamily]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), TypeFamily.INTEGER),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"),
        TypeFamily.BYTES,
    ),
    "decimal": TypeFamily.NUMERIC,
    "date": TypeFamily.DATE,
    "uuid": TypeFamily.UUID,
    "json": TypeFamily.DOCUMENT,
}
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")

# In other character sets several characters of Unicode may be stored as one.
_UNICODE: Final = ("utf8mb4", "utf8mb3", "utf8", "utf16", "utf32", "ucs2", "latin1", "ascii")
_COLLATIONS: Final[Mapping[str, TypeFamily]] = {
    **{f"{name}_bin": TypeFamily.TEXT for name in _UNICODE},
    **{f"{name}_nopad_bin": TypeFamily.TEXT for name in _UNICODE},
    **{f"{name}_general_ci": TypeFamily.GENERAL_CI for name in ("utf8mb4", "utf8mb3", "utf8")},
    **{f"{name}_general_nopad_ci": TypeFamily.GENERAL_CI for name in ("utf8mb4", "utf8mb3", "utf8")},
    "latin1_swedish_ci": TypeFamily.SWEDISH_CI,
    "latin1_swedish_nopad_ci": TypeFamily.SWEDISH_CI,
}

_FLAG: Final = "tinyint(1)"
"""BOOLEAN is another word for it: its values come as true and false, as 1 and 0, and as any other small number."""


def family_of(data_type: str, column_type: str, collation: str | None) -> TypeFamily:
    """Returns the family of a column.

    Args:
        data_type: the type's name alone, as ``information_schema.columns.data_type`` has it.
        column_type: the type with its length and signs.
        collation: the column's; None for a type without one.
    """
    if data_type in _TEXTS:
        return _COLLATIONS.get(collation or "", TypeFamily.OPAQUE)
    return TypeFamily.OPAQUE if column_type.startswith(_FLAG) else _FAMILIES.get(data_type, TypeFamily.OPAQUE)


def is_text(column_type: str) -> bool:
    """Returns whether the type, as the catalogue has it, is one of texts with a collation."""
    return column_type.partition("(")[0].partition(" ")[0].lower() in _TEXTS
