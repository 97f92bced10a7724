"""Compares buckets and sorted rows: against a comparison of whole sets."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kainite.replicate.row_merge import BucketSums, DifferingRow, RowDifference, differing_buckets, differing_rows

# Few hashes and keys, so that different keys have one hash.
ROWS = st.dictionaries(st.tuples(st.integers(-2, 2), st.sampled_from("abcd")), st.integers(0, 1))
BAGS = st.lists(st.sampled_from([(0, "a", 5), (0, "b", 6), (1, "c", 7)]))


@given(ROWS, ROWS)
def test_rows_with_keys_differ_as_their_sets_do(
    ours: dict[tuple[int, str], int], its: dict[tuple[int, str], int]
) -> None:
    found = differing_rows(
        sorted((at, key, row) for (at, key), row in ours.items()),
        sorted((at, key, row) for (at, key), row in its.items()),
        keyed=True,
    )
    names = {at: DifferingRow(at[1], RowDifference.MISSING) for at in ours.keys() - its.keys()}
    names |= {at: DifferingRow(at[1], RowDifference.EXTRA) for at in its.keys() - ours.keys()}
    names |= {at: DifferingRow(at[1], RowDifference.CHANGED) for at in ours.keys() & its.keys() if ours[at] != its[at]}
    assert Counter(found) == Counter(names.values())


@given(BAGS, BAGS)
def test_rows_without_keys_are_counted(ours: list[tuple[int, str, int]], its: list[tuple[int, str, int]]) -> None:
    found = {(row.key, row.how): row.times for row in differing_rows(sorted(ours), sorted(its), keyed=False)}
    expected = {(key, RowDifference.MISSING): n for (_, key, _), n in (Counter(ours) - Counter(its)).items()}
    expected |= {(key, RowDifference.EXTRA): n for (_, key, _), n in (Counter(its) - Counter(ours)).items()}
    assert found == expected


def test_buckets_differ_by_their_counts_or_their_sums() -> None:
    source, target = BucketSums(), BucketSums()
    source.add([(0, 2, 10), (1, 1, 5), (2, 1, 7), (3, 4, 1)])
    source.add([(0, 1, 1)])
    target.add([(0, 3, 11), (1, 1, 6), (2, 2, 7), (4, 1, 0)])
    assert differing_buckets(source, target) == {1: 2, 2: 3, 3: 4, 4: 1}
    assert (source.rows, target.rows) == (9, 7)
