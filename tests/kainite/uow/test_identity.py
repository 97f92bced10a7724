"""What is one delta, and what is another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.uow.delta import Delta, Operation
from kainite.uow.identity import DIGEST_BYTES, identity_of, join_digests, split_digests

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


@given(st.lists(st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)))
def test_digests_as_text_read_back(digests: list[bytes]) -> None:
    assert split_digests(join_digests(digests)) == digests


@pytest.mark.parametrize("text", ["AA==", "?", "AAAA" * 6])
def test_what_is_no_list_of_digests_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        split_digests(text)
