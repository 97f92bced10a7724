"""What a child emits that no unit of work may be made of, or that contradicts other units: a person discards it.

An odd unit touches no row that others touch, so none of it may ever be applied, and nothing may wait for it for longer
than until it has failed. It must be listed as failed: nothing is dropped without a word. Where two units say one
number, one of the two fails, whichever comes last; a *spoiled* transaction of the source has one malformed change in
addition. A unit that says a number beyond all bounds (*huge*) has no good end, and one whose number is far ahead of the
others (*far*) has no turn: each fails when it has waited too long, and the order goes on as if it had no number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.schema import JOURNAL

NUMBERED: Final = ("malformed", "unknown table", "broken line", "two ends", "too many")
"""Kinds of odd units that have a number of their own where units are numbered."""

NAMELESS, DOUBLED, SPOILED = "nameless line", "doubled number", "spoiled"

HUGE, FAR = "huge number", "far number"

KINDS: Final = (*NUMBERED, NAMELESS, DOUBLED, SPOILED, HUGE, FAR)

IN_ORDER_ALONE: Final = (DOUBLED, FAR)
"""Kinds that are odd only where units go in the order of their numbers; elsewhere a number says nothing."""

AFTER_A_WAIT: Final = (HUGE, FAR)
"""Kinds that fail when they have waited for as long as a unit may: for a good end, and for their turn."""

_HUGE: Final = (2**64 - 1, 2**63, 10**30)
_FAR: Final = (10**18, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Odd:
    """An odd unit.

    Attributes:
        after: the number of the transaction that it comes behind, or that it spoils; each number once.
        kind: one of :data:`KINDS`.
    """

    after: int
    kind: str

    @property
    def uow(self) -> str:
        """Returns the name of the unit that must fail, or of the one that says a number again."""
        return f"T-{self.after}" if self.kind == SPOILED else f"B-{self.after}"

    def messages(self, number: int | None) -> list[bytes]:
        """Returns the payloads of its records; ``number`` is its own, or the one that it says again."""
        good = {"uow": self.uow, "table": JOURNAL, "op": "insert", "row": {"what": self.uow}, "ordinal": 0}
        bad = spoiling(self.uow) if self.kind == "malformed" else {**good, "table": "nowhere", "ordinal": 1}
        end: dict[str, Any] = {"uow": self.uow, "end": True, "count": 2}
        end |= {} if number is None else {"number": number}
        match self.kind:
            case "malformed" | "unknown table":
                return [_emitting(good), _emitting(bad), _emitting(end)]
            case "broken line":
                return [_emitting(good), _emitting(bad)[:-9], _emitting(end)]
            case "two ends":
                return [_emitting(good, {**end, "count": 1}, end)]
            case "too many":
                return [_emitting(good, {**good, "ordinal": 1}, {**end, "count": 1})]
            case "nameless line":
                return [b'{"action": "emit", "deltas": [{"table": "' + str(self.after).encode()]
            case "doubled number":
                return [_emitting(good, {**end, "count": 1})]
            case "huge number":
                return [_emitting(good, {**end, "count": 1, "number": _HUGE[self.after % len(_HUGE)]})]
            case "far number":
                return [_emitting(good, {**end, "count": 1, "number": _FAR[self.after % len(_FAR)]})]
        return []


def spoiling(uow: str) -> dict[str, Any]:
    """Returns a delta that is none."""
    return {"uow": uow, "table": JOURNAL, "op": "explode", "row": {}}


def _emitting(*deltas: dict[str, Any]) -> bytes:
    return json.dumps({"action": "emit", "deltas": deltas}).encode()


@dataclass
class OddUnits:
    """What the oracle knows of odd units.

    Attributes:
        planned: all that there will be.
        failed: the units that were seen failed.
    """

    planned: Sequence[Odd] = ()
    failed: set[str] = field(default_factory=set)

    def numbers(self) -> list[int]:
        """Returns the transactions behind which a number belongs to an odd unit, in order."""
        return sorted(odd.after for odd in self.planned if odd.kind in NUMBERED)

    def hopeless(self) -> set[int]:
        """Returns the transactions that may never be applied, or have to be."""
        return {odd.after for odd in self.planned if odd.kind in (SPOILED, DOUBLED)}

    def without_turn(self) -> set[int]:
        """Returns the transactions whose number may be another unit's: they fail as soon as they are whole."""
        return {odd.after for odd in self.planned if odd.kind == DOUBLED}

    def may_fail(self, uow: str) -> bool:
        """Returns whether a unit is odd itself; one without a name is called by its place in the stream."""
        if uow.startswith(("T-", "missing:", "number:")):
            return any(uow == odd.uow for odd in self.planned)
        return bool(self.planned)

    def said(self, name: str) -> bool:
        """Returns whether a row of the journal is an odd unit's."""
        return name.startswith("B-")

    def look(self, names: Sequence[str]) -> str | None:
        """Looks at the journal; returns what is wrong."""
        doubled = {odd.uow: f"T-{odd.after}" for odd in self.planned if odd.kind == DOUBLED}
        there = Counter(name for name in names if self.said(name))
        for name, times in sorted(there.items()):
            if times > 1 or name not in doubled:
                return f"{name} is applied {times} times, and is no unit of work"
            if doubled[name] in names:
                return f"{name} is applied, and so is {doubled[name]}, which has the same number"
        return None

    def missing(self) -> list[str]:
        """Returns what was not seen failed, and had to be."""
        told = [odd for odd in self.planned if odd.kind != DOUBLED]
        unnamed = any(not name.startswith(("T-", "B-")) for name in self.failed)
        return [
            f"{odd.uow} ({odd.kind}) as failed" for odd in told
            if not (unnamed if odd.kind == NAMELESS else odd.uow in self.failed)
        ]  # fmt: skip
