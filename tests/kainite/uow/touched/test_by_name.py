"""Deltas signed by their names have the signatures that the general way gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Catalogue, ReferentialAction
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from kainite.uow.touched import by_name
from kainite.uow.touched.by_name import Sign, SigningByName
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import HASHED
from support.tables import SHOP

FULL = {"id": 1, "email": "a@b", "country": "de", "name": "Ann"}
CASES = {
    "insert": ("customer", "insert", {"id": 1}, FULL, {}),
    "insert without a parent": ("customer", "insert", {"id": 1}, {**FULL, "country": None}, {}),
    "delete": ("customer", "delete", {"id": 1}, {}, {"email": "a@b", "country": "de"}),
    "upsert": ("customer", "upsert", {"id": 1}, FULL, {"email": "other"}),
    "update of no key": ("customer", "update", {"id": 1}, {"name": "Bob"}, {}),
    "update of keys, old values told": ("customer", "update", {"id": 1}, {**FULL, "id": 2}, {**FULL, "country": "fr"}),
    "update of keys that stay": ("customer", "update", {"id": 1}, FULL, FULL),
    "update of keys, old values not told": ("customer", "update", {"id": 1}, {"country": "fr", "email": None}, {}),
    "key of two columns": ("order_line", "update", {"order_id": 1, "line": 2}, {"line": 3}, {}),
    "named by two columns": ("shipment", "insert", {"id": 1}, {"id": 1, "order_id": 2, "line": 3, "notify": "x"}, {}),
    "no key": ("history", "insert", {}, {"customer": 1, "note": "x"}, {}),
}


def signer(delta: Delta, catalogue: Catalogue = SHOP) -> Sign | None:
    return SigningByName().sign(TouchedKeys(catalogue, HASHED).plan(delta.table), delta)


def delta_of(table: str, op: str, key: Any, row: Any, before: Any) -> Delta:
    return Delta(table, Operation(op), key, row, before)


@pytest.mark.parametrize("case", CASES)
def test_signatures_are_those_of_the_general_way(case: str) -> None:
    delta = delta_of(*CASES[case])
    sign, written, read = signer(delta), set[int](), set[int]()
    assert sign is not None
    for _ in range(2):  # the second time values are remembered
        sign(delta.key, delta.row, delta.before, written, read)
    expected_written, expected_read = Signatures(SHOP).of([delta])
    assert written == expected_written
    assert read == expected_read


def test_values_of_other_types_are_not_mixed_up() -> None:
    delta = delta_of("country", "delete", {"code": 1}, {}, {})
    sign, written = signer(delta), set[int]()
    assert sign is not None
    sign(delta.key, {}, {}, written, set())
    with pytest.raises(DeltaError, match="True is no text"):
        sign({"code": True}, {}, {}, written, set())
    assert len(written) == 2


def test_nothing_is_added_when_a_value_does_not_fit() -> None:
    delta = delta_of(*CASES["insert"])
    sign, written, read = signer(delta), set[int](), set[int]()
    assert sign is not None
    with pytest.raises(DeltaError, match="country"):
        sign({"id": 1}, {**FULL, "country": 1.5}, {}, written, read)
    assert not written
    assert not read


def test_foreign_keys_that_act_take_more_than_names() -> None:
    lines = SHOP.tables["order_line"]
    acting = replace(lines, foreign_keys=(replace(lines.foreign_keys[0], on_delete=ReferentialAction.CASCADE),))
    catalogue = Catalogue({**SHOP.tables, "order_line": acting}, "public")
    for table, key in (("orders", {"id": 1}), ("order_line", {"order_id": 1, "line": 1})):
        assert signer(delta_of(table, "delete", key, {}, {}), catalogue) is None
        assert signer(delta_of(table, "delete", key, {}, {})) is not None


def test_values_that_were_forgotten_have_the_same_signatures_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_name, "CACHED", 2)
    sign = signer(delta_of(*CASES["update of no key"]))
    assert sign is not None
    for number in (1, 2, 3, 1, "1", 4, 1):
        written = set[int]()
        sign({"id": number}, {"name": "Bob"}, {}, written, set())
        assert written == Signatures(SHOP).of([delta_of("customer", "update", {"id": number}, {"name": "Bob"}, {})])[0]
