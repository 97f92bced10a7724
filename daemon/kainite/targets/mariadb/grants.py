"""Reads ``SHOW GRANTS``: what the role of a connection may do with a table. Pure.

A role that lacks TRIGGER on a table does not see its triggers, while they fire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_GRANT: Final = re.compile(r"GRANT (?P<rights>.+?) ON (?:TABLE )?(?P<schema>\S+?)\.(?P<table>\S+) TO ", re.DOTALL)
_OF_COLUMNS: Final = re.compile(r"[A-Z ]+\([^)]*\)")
_ALL: Final = "ALL PRIVILEGES"


@dataclass(frozen=True, slots=True)
class TableGrant:
    """Rights on the tables that two patterns match."""

    rights: frozenset[str]
    schema: re.Pattern[str]
    table: re.Pattern[str]

    def gives(self, right: str, schema: str, table: str) -> bool:
        """Returns whether it gives a right on a table."""
        there = self.schema.fullmatch(schema) and self.table.fullmatch(table)
        return bool(there) and (right in self.rights or _ALL in self.rights)


def grants_of(lines: Iterable[str]) -> tuple[TableGrant, ...]:
    """Returns the grants on whole tables; rights on single columns are left out."""
    return tuple(
        TableGrant(_rights(found["rights"]), _pattern(found["schema"], wild=True), _pattern(found["table"], wild=False))
        for line in lines
        if (found := _GRANT.match(line))
    )


def lacking(grants: Iterable[TableGrant], wanted: Iterable[str], schema: str, table: str) -> list[str]:
    """Returns those of the rights that no grant gives on a table."""
    known = list(grants)
    return [right for right in wanted if not any(grant.gives(right, schema, table) for grant in known)]


def _rights(text: str) -> frozenset[str]:
    return frozenset(right.strip() for right in _OF_COLUMNS.sub("", text).split(","))


def _pattern(quoted: str, *, wild: bool) -> re.Pattern[str]:
    r"""Returns what a name in a grant matches: a schema's ``%`` and ``_`` stand for others, but behind a ``\``."""
    if quoted == "*":
        return re.compile(r".*", re.DOTALL)
    name = quoted[1:-1].replace("``", "`") if quoted.startswith("`") else quoted
    if not wild:
        return re.compile(re.escape(name), re.IGNORECASE)
    pieces = re.findall(r"\\.|.", name, re.DOTALL)
    others = {"%": ".*", "_": "."}
    return re.compile("".join(others.get(piece) or re.escape(piece[-1]) for piece in pieces), re.IGNORECASE | re.DOTALL)
