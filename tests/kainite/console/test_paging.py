"""Pages of a long list."""

from __future__ import annotations

import pytest

from kainite.console.paging import page_number, page_of


@pytest.mark.parametrize(
    ("text", "number"),
    [(None, 1), ("", 1), ("2", 2), ("0", 1), ("-1", 1), ("x", 1), ("99999999", 1), ("9999999", 9_999_999)],
)
def test_what_is_no_number_asks_for_the_first_page(text: str | None, number: int) -> None:
    assert page_number(text) == number


def test_each_row_stands_on_one_page() -> None:
    rows = list(range(101))
    pages = [page_of(rows, number, 50) for number in (1, 2, 3)]
    assert [row for page in pages for row in page.rows] == rows
    assert [(page.first, page.last, page.has_next) for page in pages] == [
        (1, 50, True), (51, 100, True), (101, 101, False)
    ]  # fmt: skip
    assert not page_of(rows[:50], 1, 50).has_next


def test_a_page_behind_the_end_is_the_last_one() -> None:
    assert page_of([1, 2, 3], 9, 2).rows == [3]
    empty = page_of(list[int](), 9, 2)
    assert (list(empty.rows), empty.number, empty.has_next) == ([], 1, False)
