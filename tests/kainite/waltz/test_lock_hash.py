"""The hashes of locks: Waltz's own, byte for byte, and the one that does not alias neighbours."""

from __future__ import annotations

import pytest

from kainite.waltz.lock_hash import lock_hash, waltz_lock_hash


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("payment", 1, -786681337),
        ("payment", -1, -786681338),
        ("payment", 2**33 + 5, -786681343),
        ("ab", 2, 3107),
        ("ac", 1, 3107),
        ("", 0, 0),
    ],
)
def test_the_hash_of_waltz_clients(name: str, number: int, expected: int) -> None:
    assert waltz_lock_hash(name, number) == expected


def test_neighbours_have_hashes_of_their_own() -> None:
    names = [(name, number) for name in ("table_a", "table_b", "ab", "ac") for number in range(2_000)]
    hashes = [lock_hash(*name) for name in names]
    assert len(set(hashes)) > len(hashes) - 20
    assert all(-(2**31) <= found < 2**31 for found in hashes)


def test_keys_that_differ_in_kind_or_in_where_they_part_differ() -> None:
    assert (
        len({lock_hash("t", 1), lock_hash("t", "1"), lock_hash("t", 1, 2), lock_hash("t", "1 2"), lock_hash("t")}) == 5
    )
