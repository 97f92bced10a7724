"""A set of ordinals, against a Python set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.state.ordinal_pages import OrdinalPages, add_ordinals, has_ordinal, ordinals_in

ORDINALS = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))


@given(st.lists(st.lists(ORDINALS)), ORDINALS)
def test_it_has_what_was_added_and_nothing_else(added: list[list[int]], other: int) -> None:
    pages: OrdinalPages = {}
    for some in added:
        add_ordinals(pages, some)
    expected = {ordinal for some in added for ordinal in some}
    assert set(ordinals_in(pages)) == expected
    assert len(list(ordinals_in(pages))) == len(expected)
    assert all(has_ordinal(pages, ordinal) for ordinal in expected)
    assert has_ordinal(pages, other) == (other in expected)


def test_the_ordinals_of_a_large_transaction_share_pages_whatever_order_they_come_in() -> None:
    pages: OrdinalPages = {}
    add_ordinals(pages, range(1, 64_000, 2))
    add_ordinals(pages, range(0, 64_000, 2))
    assert len(pages) == 1_000
    assert set(pages.values()) == {2**64 - 1}
