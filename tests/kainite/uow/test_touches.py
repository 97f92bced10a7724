"""What a unit touches, as it grows part by part: the order of the parts does not matter, but for the scheme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.uow.scheme import MIXED
from kainite.uow.touches import NOTHING, Touched, TouchedSoFar

names = st.frozensets(st.sampled_from("abc")).map(lambda found: tuple(sorted(found)))
signatures = st.frozensets(st.integers(0, 9))
touches = st.builds(Touched, signatures, signatures, names, names, st.just("s"))


def grown(*parts: Touched) -> Touched:
    so_far = TouchedSoFar()
    for before, part in enumerate(parts):
        so_far.add(part, 1, before)
    return so_far.frozen()


@given(st.lists(touches, min_size=1, max_size=4), st.randoms())
def test_parts_add_up_in_any_order(parts: list[Touched], chance: object) -> None:
    shuffled = list(parts)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    whole = grown(*parts)

    assert whole == grown(*shuffled) == grown(*parts, *parts)
    assert whole.written == frozenset().union(*(part.written for part in parts))
    assert whole.tables == tuple(sorted({name for part in parts for name in part.tables}))


@given(touches, touches)
def test_what_would_be_touched_leaves_the_value_as_it_is(one: Touched, other: Touched) -> None:
    so_far = TouchedSoFar.of(one)

    assert so_far.with_(other, 1, 1) == grown(one, other)
    assert so_far.frozen() == one
    so_far.copy().add(other, 1, 1)
    assert so_far.frozen() == one


@pytest.mark.parametrize(
    ("first", "second", "deltas", "expected"),
    [
        ("s", "s", 1, "s"),
        ("s", "t", 0, "s"),  # a part without deltas has no say
        (None, "s", 1, MIXED),
        ("s", "t", 1, MIXED),
    ],
)
def test_parts_of_two_schemes_cannot_be_compared(
    first: str | None, second: str | None, deltas: int, expected: str | None
) -> None:
    so_far = TouchedSoFar.of(Touched(scheme=first))
    so_far.add(Touched(scheme=second), deltas, 1)

    assert so_far.scheme == expected


def test_the_first_deltas_give_the_scheme() -> None:
    so_far = TouchedSoFar.of(NOTHING)
    so_far.add(Touched(scheme="s"), 1, 0)

    assert so_far.scheme == "s"
