"""Digests in little memory: what a set answers, and the oldest leave first."""

from __future__ import annotations

import tracemalloc
from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.log.state.digest_set import DIGEST_BYTES, DigestSet, digest_of

# Few bytes of few values, so that digests meet in one bucket, and across the border of two.
DIGESTS = st.lists(st.sampled_from([0, 1]), min_size=3, max_size=3).map(
    lambda few: bytes([0, 0] + [few[0]] * 12 + few[1:])
)


@settings(deadline=None)
@given(st.lists(st.one_of(st.lists(DIGESTS, max_size=5), st.integers(1, 4)), max_size=20), st.lists(DIGESTS))
def test_it_holds_what_was_added_and_has_not_left(steps: list[list[bytes] | int], asked: list[bytes]) -> None:
    digests, expected = DigestSet(), deque[bytes]()
    for step in steps:
        if isinstance(step, list):
            digests.extend(b"".join(step))
            expected += step
        else:
            count = min(step, len(expected))
            digests.forget(count)
            for _ in range(count):
                expected.popleft()
        assert len(digests) == len(expected)
        assert all((digest in digests) == (digest in expected) for digest in asked)


def test_a_digest_has_its_size_and_tells_names_apart() -> None:
    assert {len(digest_of(name)) for name in ("", "T-1", "é\udc80")} == {DIGEST_BYTES}
    assert digest_of("T-1") != digest_of("T-2")


def test_a_name_takes_few_bytes() -> None:
    digests = DigestSet()
    tracemalloc.start()
    try:
        for number in range(250_000):
            digests.extend(digest_of(f"T-{number}"))
        # The 65,536 byte strings take 7 MB by themselves, once.
        assert tracemalloc.get_traced_memory()[0] < 250_000 * 23 + 12_000_000
    finally:
        tracemalloc.stop()
    assert digest_of("T-0") in digests
    assert digest_of("T-249999") in digests
    assert digest_of("T-250000") not in digests
