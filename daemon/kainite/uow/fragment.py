"""Fragments: the deltas, ends and rejects of one unit of work in one append."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from kainite.base.value_class import value_class
from kainite.uow.delta import Delta, UnitEnd
from kainite.uow.identity import Identity, identity_of
from kainite.uow.packing import Piece, pack
from kainite.uow.scheme import Scheme
from kainite.uow.touches import NOTHING, Touched


@dataclass(frozen=True, slots=True)
class Reject:
    """An emitted line that is no delta, or a delta that does not fit the catalogue: its unit will fail with the cause.

    Attributes:
        cause: what is wrong, one line.
        line: the offending text, cut to :data:`MAX_LINE` characters; of what belongs to no unit, a listing
            (:mod:`kainite.uow.unprocessed`).
    """

    cause: str
    line: str

    MAX_LINE: ClassVar[int] = 2_000


@value_class(frozen=True, slots=True)
class Fragment:
    """Deltas of one unit from one ``processRecords`` call, in the order in which they were emitted.

    A unit's fragments may come through different shards and in any order.

    Attributes:
        uow: the unit.
        deltas: in order; the same delta may be there twice. A fragment that has a piece and identities needs none.
        touched: what the deltas touch.
        ends: of the unit; more than one if it was sent again.
        rejects: lines of the unit that are no deltas.
        identities: of each delta (:mod:`kainite.uow.identity`). When none are given, those of ``deltas`` as they are.
        piece: the deltas as the log holds them, compressed (:mod:`kainite.uow.packing`). When none is given, that of
            ``deltas`` alone: it is made on the thread that makes the fragment, and the log's owner only copies it.
        without: the places of deltas in the piece that do not count, because the unit has them.
        signed: the signatures in ``touched`` as they came, written then read, 64-bit integers, big-endian; empty where
            they came otherwise.
        misfits: those of ``deltas`` that do not fit the target's catalogue.
        scheme: the one that ``touched`` names; None where nobody compares units of different schemes.
        time: the latest commit time that deltas and ends tell, nanoseconds since the epoch by the source's clock;
            None when they tell none.
        arrived_ms: when the last record of the call arrived in its shard, milliseconds since the epoch by Kinesis'
            clock; None where that is not known.
    """

    uow: str
    deltas: tuple[Delta, ...] = ()
    touched: Touched = NOTHING
    ends: tuple[UnitEnd, ...] = ()
    rejects: tuple[Reject, ...] = ()
    identities: tuple[Identity, ...] = ()
    misfits: tuple[Reject, ...] = ()
    scheme: Scheme | None = None
    time: int | None = None
    arrived_ms: int | None = None
    piece: Piece | None = field(default=None, repr=False, compare=False)
    without: tuple[int, ...] = ()
    signed: bytes = field(default=b"", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.deltas and self.piece is None:
            object.__setattr__(self, "piece", pack([self.deltas])[0])
        if self.deltas and len(self.identities) != len(self.deltas):
            object.__setattr__(self, "identities", tuple(map(identity_of, self.deltas)))

    @property
    def count(self) -> int:
        """Returns how many deltas count."""
        return len(self.identities)
