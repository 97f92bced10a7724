"""Says how texts of a source are compared with those of a MariaDB target: by both types. Pure.

The source's text is what its deltas have: the extractor's for MariaDB (:mod:`kainite.capture.mysql.text_forms`),
PostgreSQL's output for PostgreSQL, with 1 and 0 for truth values. The target's is the extractor's, too, of what the
column has made of that text (:mod:`kainite_spark.targets.mariadb.literals`). What both are brought to:

=========================================  ===========================================================================
source and target                          text
=========================================  ===========================================================================
any, and a text type, ``ENUM``, ``JSON``   as it is; for ``CHAR`` without spaces at the end, which the server cuts off
any, and a number                          its digits without an exponent, and without zeros at the end of a fraction
a number of four bytes, and ``FLOAT``      the number of four bytes
a number of four or eight bytes, and       the number of eight bytes
``DOUBLE``
any, and a date or a moment                without zeros at the end of the fraction; without midnight if one side has
                                           no time of day; in UTC
any, and ``TIME``                          without zeros at the end of the fraction
any, and ``VARBINARY`` or a blob           the bytes in hexadecimal; those of a text are UTF-8
any, and ``BINARY``                        the same without zero bytes at the end, which the server adds
bits or a truth value, and ``BIT``         without zeros in front, which the server adds
any, and ``UUID``                          its 32 digits
an address, and ``INET4`` or ``INET6``     as Python spells it
=========================================  ===========================================================================

Nothing is rounded: what the server has rounded because the target's type has fewer digits is another text.
"""

from __future__ import annotations

import re
from typing import Final

from kainite.replicate.canonical_texts import TextKind

TEXTS: Final = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"}
)  # fmt: skip
"""Types of MariaDB whose values are texts."""

_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "decimal"})
_MOMENTS: Final = frozenset({"date", "datetime", "timestamp"})
_BYTES: Final = frozenset({"varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_SINGLE: Final = frozenset({"real", "float"})
_DOUBLE: Final = frozenset({"double precision", "double", *_SINGLE})
_OTHERS: Final = {
    "time": TextKind.MOMENT, "binary": TextKind.PADDED_BYTES, "uuid": TextKind.UUID, "inet4": TextKind.ADDRESS,
    "inet6": TextKind.ADDRESS, "char": TextKind.PADDED,
}  # fmt: skip
_LENGTH: Final = re.compile(r"\(.*?\)")


def kind_into_mariadb(source: str, target: str) -> TextKind:
    """Returns how the texts of a column are compared.

    Args:
        source: the source's type, as PostgreSQL spells it, or MariaDB's name of it alone.
        target: the name of the target's type, in lower case.
    """
    name = _LENGTH.sub("", source)
    if target in _NUMBERS:
        return TextKind.NUMBER
    if target == "float":
        return TextKind.SINGLE if name in _SINGLE else TextKind.NUMBER
    if target == "double":
        return TextKind.DOUBLE if name in _DOUBLE else TextKind.NUMBER
    if target in _MOMENTS:
        return TextKind.DAY if "date" in (name, target) else TextKind.MOMENT
    if target in _BYTES:
        return TextKind.BYTES
    if target == "bit":
        return TextKind.BITS if name in ("bit", "boolean") else TextKind.AS_IT_IS
    return _OTHERS.get(target, TextKind.AS_IT_IS)
