"""Compares buckets of rows, and rows of two sides that come sorted by the hash of their keys. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

RowHash: TypeAlias = tuple[int, str, int]
"""The hash of a row's key, the key's text, and the row's hash."""


class RowDifference(StrEnum):
    """How a row differs."""

    MISSING = "missing"  # in the target
    EXTRA = "extra"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that differs.

    Attributes:
        key: the text of its key; for a table without a key that of the row.
        how: how it differs.
        times: how many such rows there are; more than one only for a table without a key.
    """

    key: str
    how: RowDifference
    times: int = 1


@dataclass(slots=True)
class BucketSums:
    """The rows of one side, by buckets.

    Attributes:
        counts: how many rows a bucket has.
        sums: the sum of their hashes.
    """

    counts: Counter[int] = field(default_factory=Counter)
    sums: Counter[int] = field(default_factory=Counter)

    def add(self, found: Iterable[tuple[int, int, int]]) -> None:
        """Adds a range's buckets, each with its count and sum."""
        for bucket, count, total in found:
            self.counts[bucket] += count
            self.sums[bucket] += total

    @property
    def rows(self) -> int:
        """Returns how many rows there are."""
        return self.counts.total()


def differing_buckets(source: BucketSums, target: BucketSums) -> Mapping[int, int]:
    """Returns the buckets whose rows differ, each with how many rows both sides have in it."""
    buckets = source.counts.keys() | target.counts.keys()
    return {
        bucket: source.counts[bucket] + target.counts[bucket]
        for bucket in sorted(buckets)
        if source.counts[bucket] != target.counts[bucket] or source.sums[bucket] != target.sums[bucket]
    }


def differing_rows(source: Iterable[RowHash], target: Iterable[RowHash], *, keyed: bool) -> Iterator[DifferingRow]:
    """Yields the rows that differ, of rows that come sorted by the first of their three values.

    Args:
        source, target: the rows of both sides.
        keyed: whether a key's text names one row; else rows are counted.
    """
    for ours, theirs in _pairs(groupby(source, itemgetter(0)), groupby(target, itemgetter(0))):
        one, other = Counter((key, row) for _, key, row in ours), Counter((key, row) for _, key, row in theirs)
        missing, extra = one - other, other - one
        keys = dict.fromkeys(key for key, _ in (*missing, *extra))
        for key in keys:
            lacks = sum(count for (name, _), count in missing.items() if name == key)
            has = sum(count for (name, _), count in extra.items() if name == key)
            if keyed and lacks and has:
                yield DifferingRow(key, RowDifference.CHANGED)
            else:
                yield from (
                    DifferingRow(key, how, times)
                    for how, times in ((RowDifference.MISSING, lacks), (RowDifference.EXTRA, has))
                    if times
                )


_Groups: TypeAlias = Iterator[tuple[int, Iterator[RowHash]]]


def _pairs(source: _Groups, target: _Groups) -> Iterator[tuple[list[RowHash], list[RowHash]]]:
    """Yields the rows of both sides whose keys have the same hash, for each hash."""
    ours, theirs = _next(source), _next(target)
    while ours is not None or theirs is not None:
        at = min(group[0] for group in (ours, theirs) if group is not None)
        mine = ours[1] if ours is not None and ours[0] == at else []
        its = theirs[1] if theirs is not None and theirs[0] == at else []
        yield mine, its
        ours = _next(source) if ours is not None and ours[0] == at else ours
        theirs = _next(target) if theirs is not None and theirs[0] == at else theirs


def _next(groups: _Groups) -> tuple[int, list[RowHash]] | None:
    found = next(groups, None)
    return None if found is None else (found[0], list(found[1]))
