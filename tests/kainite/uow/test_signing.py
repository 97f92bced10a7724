"""Deltas are judged under one catalogue: signed, or misfits."""

from __future__ import annotations

import pytest

from kainite.base.errors import DeltaError
from kainite.uow.delta import Delta, Operation
from kainite.uow.signing import SignedDeltas, Signing
from support.tables import SHOP

LINE = {"table": "order_line", "op": "insert", "row": {"order_id": 4, "line": 1}}


def test_a_known_shape_signs_as_the_general_way() -> None:
    signing, quick, general = Signing(SHOP), SignedDeltas(), SignedDeltas()
    signing.judge(LINE, general)
    signing.judge(LINE, quick)
    assert quick.touched("s") == general.touched("s")
    assert quick.items == general.items
    assert quick.touched("s").tables == ("order_line",)


def test_a_misfit_is_kept_as_it_was_emitted() -> None:
    signed = SignedDeltas()
    Signing(SHOP).judge({**LINE, "table": "unheard_of"}, signed)
    [(delta, cause)] = signed.misfits
    assert (delta.table, signed.deltas) == ("unheard_of", [delta])
    assert "unheard_of" in cause
    assert signed.touched(None).unsigned == ("unheard_of",)


def test_what_is_no_delta_adds_nothing() -> None:
    signed = SignedDeltas()
    with pytest.raises(DeltaError):
        Signing(SHOP).judge({"table": "order_line"}, signed)
    assert signed == SignedDeltas()


def test_without_a_catalogue_deltas_are_signed_by_their_keys() -> None:
    deltas = [Delta("x", Operation.DELETE, {"k": key}, {}, {}) for key in (1, 2)]
    signed = Signing(None).judge_all(deltas)
    assert len(signed.written) == 2
    assert signed.deltas == deltas
