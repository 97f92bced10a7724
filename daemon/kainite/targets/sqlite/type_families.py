"""The families of SQLite's declared types: how a column's values are spelled before keys are compared. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kainite.uow.catalogue.tables import TypeFamily

# The declared type's first word, as other databases mean it; SQLite accepts any word. Decimals are opaque: SQLite
# stores a double, its releases do not all round alike, and texts that differ in the 17th digit may be one key.
_FAMILIES: Mapping[str, TypeFamily] = {
    **dict.fromkeys(
        ("int", "integer", "bigint", "smallint", "tinyint", "mediumint", "int2", "int4", "int8"), TypeFamily.INTEGER
    ),
    **dict.fromkeys(("text", "varchar", "char", "character", "nchar", "nvarchar", "clob"), TypeFamily.TEXT),
    **dict.fromkeys(("bool", "boolean"), TypeFamily.BOOLEAN),
    "uuid": TypeFamily.UUID,
    "date": TypeFamily.DATE,
}


def family_of(declared: str) -> TypeFamily:
    """Returns the family of a declared type."""
    word = re.match(r"\w*", declared.strip().lower())
    return _FAMILIES.get(word[0] if word else "", TypeFamily.OPAQUE)
