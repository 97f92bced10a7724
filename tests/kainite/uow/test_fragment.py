"""A fragment makes the piece and the identities that nobody gives it."""

from __future__ import annotations

import orjson

from kainite.uow.delta import Delta, Operation
from kainite.uow.fragment import Fragment
from kainite.uow.identity import identity_of
from kainite.uow.packing import pack

DELTAS = tuple(Delta("t", Operation.UPSERT, {"id": key}, {"id": key}, {}, key or None) for key in (0, 1))


def test_deltas_are_packed_and_identified() -> None:
    fragment = Fragment("T", DELTAS)
    assert fragment.piece is not None
    assert orjson.loads(fragment.piece.read()) == [delta.to_json() for delta in DELTAS]
    assert fragment.identities == tuple(map(identity_of, DELTAS))
    assert fragment.count == 2


def test_what_is_given_stays() -> None:
    [piece] = pack([DELTAS])
    fragment = Fragment("T", DELTAS, identities=(7, 8), piece=piece)
    assert fragment.piece is piece
    assert fragment.identities == (7, 8)


def test_without_deltas_there_is_nothing_to_pack() -> None:
    assert (Fragment("T").piece, Fragment("T", identities=(1,)).count) == (None, 1)
