"""Says how a query gets the values of columns in the very texts that the extractor makes of them from the binlog; pure.

The table of :mod:`~kainite.capture.mysql.values` has the texts. Most are what the server itself writes; where it does
not, an expression makes it do so, or the text is spelled here (:data:`SPELLINGS`). The session must have the settings
of :mod:`kainite.targets.mariadb.connection`: UTC, ``utf8mb4``, no ``PAD_CHAR_TO_FULL_LENGTH``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kainite.capture.mysql.values import float_text

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_BITS: Final = re.compile(r"bit\((\d+)\)")


class TextSpelling(StrEnum):
    """What becomes of the text that a server gives for a value."""

    AS_IT_IS = ""
    FLOAT = "float"
    DOUBLE = "double"
    ADDRESS = "address"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the text of a column is got.

    Attributes:
        sql: the expression that a query selects.
        spelling: what becomes of what the server gives.
    """

    sql: str
    spelling: TextSpelling = TextSpelling.AS_IT_IS


def text_form(name: str, data_type: str, column_type: str) -> TextForm:
    """Returns how the text of a column is got.

    Args:
        name: the column's name, quoted.
        data_type: the type's name alone, in lower case.
        column_type: the type as the catalogue spells it, in lower case.
    """
    if data_type == "float":
        return TextForm(f"{name} * 1e0", TextSpelling.FLOAT)  # as it is, it would have six digits
    if data_type == "double":
        return TextForm(f"{name} * 1e0", TextSpelling.DOUBLE)
    if data_type in ("inet4", "inet6"):
        return TextForm(f"CAST({name} AS CHAR)", TextSpelling.ADDRESS)
    if data_type in _BYTES:  # the server would make NULL of a text longer than its max_allowed_packet
        return TextForm(name, TextSpelling.BYTES)
    return TextForm(_expression(name, data_type, column_type))


def _expression(name: str, data_type: str, column_type: str) -> str:
    if data_type in _INTEGERS or (data_type == "decimal" and "zerofill" in column_type):
        return f"{name} + 0"  # without zeros in front
    if found := _BITS.fullmatch(column_type):
        return f"LPAD(BIN({name} + 0), {found[1]}, '0')"
    if data_type in _TEXTS:
        return f"CONVERT({name} USING utf8mb4)"
    if data_type == "timestamp":
        return f"IF({name} = 0, CAST({name} AS CHAR), CONCAT({name}, '+00'))"
    return f"CAST({name} AS CHAR)"


def _double(text: str) -> str:
    return repr(float(text))


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _bytes(data: bytes) -> str:
    return f"\\x{data.hex()}"


SPELLINGS: Final[Mapping[TextSpelling, Callable[[Any], str]]] = {
    TextSpelling.AS_IT_IS: str,
    TextSpelling.FLOAT: lambda text: float_text(float(text)),
    TextSpelling.DOUBLE: _double,
    TextSpelling.ADDRESS: _address,
    TextSpelling.BYTES: _bytes,
}
"""Makes the extractor's text of what a server gives: a text, or bytes (:attr:`TextSpelling.BYTES`)."""
