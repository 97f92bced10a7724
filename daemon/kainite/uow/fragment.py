"""Fragments: the deltas, ends and rejects of one unit of work in one append."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kainite.uow.delta import Delta, UnitEnd


@dataclass(frozen=True, slots=True)
class Reject:
    """An emitted line that is no delta: its unit will fail with the cause.

    Attributes:
        cause: what is wrong, one line.
        line: the offending text, cut to :data:`MAX_LINE` characters.
    """

    cause: str
    line: str

    MAX_LINE: ClassVar[int] = 2_000


@dataclass(frozen=True, slots=True)
class Fragment:
    """Deltas of one unit from one ``processRecords`` call, in the order in which they were emitted.

    ``written`` and ``read`` are the 64-bit signatures of the deltas (:mod:`kainite.uow.signature`),
    each once. A unit's fragments may come through different shards and in any order.
    """

    uow: str
    deltas: tuple[Delta, ...] = ()
    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    ends: tuple[UnitEnd, ...] = ()
    rejects: tuple[Reject, ...] = ()
