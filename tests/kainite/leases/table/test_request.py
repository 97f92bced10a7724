"""Requests as a lease's item has them."""

from __future__ import annotations

import pytest

from kainite.leases.table.request import MOST_SAID, LeaseRequest, RequestKind, RequestState, request_of

ASKED = LeaseRequest("1", RequestKind.MOVE, "ada", "w2")


@pytest.mark.parametrize("state", list(RequestState))
def test_a_request_reads_back_as_written(state: RequestState) -> None:
    request = ASKED.now(state, "said", counter=7)
    assert request_of(request.as_text()) == request
    assert request.ended is (state in (RequestState.DONE, RequestState.REFUSED))


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"id":"1"}', '{"id":"1","what":"dance","by":"x"}'])
def test_what_is_no_request_of_this_release_is_none(text: str | None) -> None:
    assert request_of(text) is None


def test_what_is_said_is_bounded() -> None:
    assert len(ASKED.now(RequestState.DONE, "x" * 9_999).said) == MOST_SAID
