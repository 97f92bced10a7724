"""The four markers of the ``markers`` dialect, and the side that decides where a batch ends."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import Final

from kainite.base.errors import MessageRefusedError


class Mark(Enum):
    """The meaning of a marker."""

    EOM = auto()  # the message ends here
    EOP = auto()  # worker: the answer ends here
    EOB = auto()  # supervisor: the batch ends here
    BNC = auto()  # worker: one more message, please


class Batching(StrEnum):
    """The side that decides where a batch ends."""

    SINGLE = "single"
    WORKER = "worker"
    SUPERVISOR = "supervisor"


EXTRACTION: Final = frozenset({Mark.EOM, Mark.EOP})
"""The markers of a conversation with an extractor."""

USED: Final = {
    Batching.SINGLE: frozenset({Mark.EOM, Mark.EOP}),
    Batching.SUPERVISOR: frozenset({Mark.EOM, Mark.EOP, Mark.EOB}),
    Batching.WORKER: frozenset(Mark),
}
"""The markers of a conversation with a worker."""


@dataclass(frozen=True, slots=True)
class Markers:
    """The bytes of each marker, and the markers that a conversation uses.

    No marker that is used may be empty or contain another one that is: so at most one marker ends at any byte, and each
    is recognised at its last byte, without waiting for the next byte. The bytes of the others mean nothing.

    Raises:
        ValueError: one is empty, or contains another.
    """

    eom: bytes = b"\n"
    eop: bytes = b"\0"
    eob: bytes = b"\x17"
    bnc: bytes = b"\x06"
    used: AbstractSet[Mark] = field(default=frozenset(Mark), kw_only=True)
    _never: tuple[bytes, ...] = field(init=False, repr=False, compare=False)  # in a message, beside EOM

    def __post_init__(self) -> None:
        object.__setattr__(self, "_never", tuple(self.of(mark) for mark in Mark if mark in self.used - {Mark.EOM}))
        spelled = [(mark, self.of(mark)) for mark in Mark if mark in self.used]
        for mark, marker in spelled:
            if not marker:
                raise ValueError(f"{mark.name} is empty")
            for other, inner in spelled:
                if other is not mark and inner in marker:
                    relation = "is the same as" if inner == marker else "contains"
                    raise ValueError(f"{mark.name} {relation} {other.name}")

    def using(self, used: AbstractSet[Mark]) -> Markers:
        """Returns the same bytes for a conversation that uses these markers."""
        return replace(self, used=used)

    def of(self, mark: Mark) -> bytes:
        """Returns the bytes of one marker."""
        match mark:
            case Mark.EOM:
                return self.eom
            case Mark.EOP:
                return self.eop
            case Mark.EOB:
                return self.eob
            case Mark.BNC:
                return self.bnc

    def message(self, payload: bytes) -> bytes:
        """Returns the payload and its EOM.

        Raises:
            MessageRefusedError: a marker that is used stands in it, or its end and EOM's beginning would read as one.
        """
        framed = payload + self.eom
        if any(marker in framed for marker in self._never) or framed.find(self.eom) != len(payload):
            found = self.pattern().search(framed)
            assert found is not None
            raise MessageRefusedError(
                f"a message of {len(payload)} bytes holds the marker {self.marks()[found.group()].name}"
                f" at byte {found.start()}: choose markers that never stand in the data"
            )
        return framed

    def pattern(self) -> re.Pattern[bytes]:
        """Finds the marker that ends first. No marker contains another one, so it is the one that begins first."""
        return re.compile(b"|".join(re.escape(self.of(mark)) for mark in Mark if mark in self.used))

    def marks(self) -> dict[bytes, Mark]:
        """Returns a table from the bytes of each marker that is used to what the marker means."""
        return {self.of(mark): mark for mark in Mark if mark in self.used}

    def unused(self) -> dict[bytes, Mark]:
        """Returns a table like :attr:`marks`, of the markers that only other conversations use."""
        return {self.of(mark): mark for mark in Mark if mark not in self.used and self.of(mark)}
