"""What is one delta, and what is another."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kainite.uow.delta import Delta, Operation
from kainite.uow.identity import DIGEST_BYTES, identity_of

DELTA = Delta("t", Operation.UPDATE, {"id": 1}, {"a": 1, "b": None}, {"a": 2})


def test_an_ordinal_is_the_identity_whatever_the_delta_holds() -> None:
    assert identity_of(replace(DELTA, ordinal=7)) == identity_of(replace(DELTA, row={"a": 9}, ordinal=7)) == 7


def test_without_an_ordinal_the_content_is_the_identity_whatever_the_order_of_its_columns() -> None:
    digest = identity_of(DELTA)
    assert isinstance(digest, bytes)
    assert len(digest) == DIGEST_BYTES >= 16
    assert identity_of(replace(DELTA, row={"b": None, "a": 1})) == digest


@pytest.mark.parametrize(
    "other",
    [
        {"table": "u"},
        {"op": Operation.UPSERT},
        {"key": {"id": "1"}},
        {"row": {"a": 1}},
        {"row": {"a": True, "b": None}},
        {"row": {"a": 1.0, "b": None}},
        {"before": {}},
    ],
)
def test_other_content_is_another_identity(other: dict[str, Any]) -> None:
    assert identity_of(replace(DELTA, **other)) != identity_of(DELTA)
