"""Which target each table belongs to, where an application has several targets. Pure.

A target's name stands with patterns: ``crm.orders`` is one table, ``crm.*`` all tables whose names in deltas begin with
``crm.``. A table belongs to the target with the most exact pattern: its own name, then the longest prefix; else to the
target without patterns, if there is one. No two targets have one pattern, so a table belongs to one target at most.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from kainite.base.errors import LogCorruptError

_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class TableAssignment:
    """The targets and their tables; without a target: the application has one target, which has no name.

    Attributes:
        patterns: of each target, in the order of the settings file; the empty tuple takes all other tables.
    """

    patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the targets."""
        return tuple(name for name, _ in self.patterns)

    @property
    def digest(self) -> str:
        """Returns a few characters that differ where assignments do; empty without targets."""
        return hashlib.sha256(self.as_text().encode()).hexdigest()[:16] if self else ""

    def target_of(self, table: str) -> str | None:
        """Returns the name of the target that has a table; None where no target has it."""
        found = [(len(pattern), name) for name, own in self.patterns for pattern in own if fits(pattern, table)]
        if found:
            exact = next((name for name, own in self.patterns if table in own), None)
            return exact or max(found)[1]
        return next((name for name, own in self.patterns if not own), None)

    def parts(self, tables: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Returns the tables by target, in the order of the targets; each target has at least one table.

        What touches no table, and tables that no target has, belong to the first target: a unit of them fails there, or
        is acknowledged there.
        """
        first = self.names[0]
        of: dict[str, list[str]] = {name: [] for name in self.names}
        for table in tables:
            of[self.target_of(table) or first].append(table)
        return {name: tuple(some) for name, some in of.items() if some} or {first: ()}

    def as_text(self) -> str:
        """Returns the assignment as it stands in the log."""
        return json.dumps(dict(self.patterns), separators=(",", ":"))


NO_TARGETS: Final = TableAssignment()


def assignment_from(text: str | None) -> TableAssignment:
    """Returns the assignment that :meth:`TableAssignment.as_text` wrote; no targets for no text.

    Raises:
        LogCorruptError: the text is none that it wrote.
    """
    try:
        found = msgspec.json.decode(text, type=dict[str, tuple[str, ...]]) if text else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise LogCorruptError(f"the log's targets cannot be read: {error}") from None
    return TableAssignment(tuple(found.items()))


def fits(pattern: str, table: str) -> bool:
    """Tells whether a pattern stands for a table: it is its name, or the beginning of its name and ``*``."""
    return pattern == table or (pattern.endswith(_ALL) and table.startswith(pattern.removesuffix(_ALL)))
