"""Ranges of pages: together they are the table, each row in one of them."""

from __future__ import annotations

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.page_ranges import LEAST_PAGES, MOST_PAGES, page_ranges, pages_of_a_range
from kainite.replicate.tables import ReplicaTable, TablePart, described


@given(st.integers(0, 5000), st.integers(1, 700))
def test_ranges_follow_each_other_and_the_last_one_is_open(pages: int, size: int) -> None:
    ranges = list(page_ranges(TablePart(1, "t", pages, 0), size))
    assert ranges[0].first == 0
    assert ranges[-1].end is None
    assert [one.end for one in ranges[:-1]] == [one.first for one in ranges[1:]]
    assert all(one.end is not None and 0 < one.end - one.first <= size for one in ranges[:-1])
    assert max(pages, 1) - ranges[-1].first <= size


def test_a_range_is_neither_too_small_nor_too_large() -> None:
    def table(pages: int) -> ReplicaTable:
        return ReplicaTable("s", "t", "s.t", (), (), "d", 0, (TablePart(1, "s.t", pages, 0),))

    assert pages_of_a_range([table(10)], 2) == LEAST_PAGES
    assert pages_of_a_range([table(20_000), table(20_000)], 2) == 5_000
    assert pages_of_a_range([table(10_000_000)], 2) == MOST_PAGES


def test_each_row_of_a_table_is_in_one_range(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("INSERT INTO item SELECT n, repeat('x', 500) FROM generate_series(1, 300) n")
        connection.execute("DELETE FROM item WHERE id % 3 = 0")
        part = described(connection, [("public", "item")])["public", "item"].parts[0]
        ranges = list(page_ranges(part, 3))
        found = [
            row
            for one in ranges
            for (row,) in connection.execute(f"SELECT id FROM ONLY {one.part} WHERE {one.condition}".encode())
        ]
    assert len(ranges) > 3
    assert sorted(found) == [n for n in range(1, 301) if n % 3]
