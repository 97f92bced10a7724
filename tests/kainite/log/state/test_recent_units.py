"""Units that were dispatched, by name and number: in the tail, in segments, and after the names have left."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.state.digest_set import digest_of
from kainite.log.state.recent_units import RecentUnits, Segment


def digests(*names: str) -> bytes:
    return b"".join(map(digest_of, names))


def test_units_are_remembered_by_name_and_number() -> None:
    recent = RecentUnits([("A", 1), ("B", None)])
    recent.add("C", 3)
    assert all(uow in recent for uow in ("A", "B", "C"))
    assert "D" not in recent
    assert (recent.holder(1), recent.holder(2), recent.holder(3)) == ("A", None, "C")
    assert recent.tail() == [("A", 1), ("B", None), ("C", 3)]
    assert (recent.oldest(2), len(recent)) == (digests("A", "B"), 3)


def test_a_segment_is_remembered_until_it_is_forgotten() -> None:
    recent = RecentUnits([("A", 1), ("B", 7), ("C", 2)])
    recent.move(2, "k", 0)
    assert (list(recent.segments), recent.tail(), recent.first) == ([Segment("k", 2, 7)], [("C", 2)], 2)
    assert all(uow in recent for uow in ("A", "B", "C"))
    assert (recent.holder(7), recent.forgotten, recent.stale) == (None, None, set())
    recent.move(0, None, 1)
    assert [uow in recent for uow in ("A", "B", "C")] == [False, False, True]
    assert (recent.forgotten, recent.stale) == (7, {"k"})


def test_the_oldest_names_of_the_tail_may_be_forgotten_at_once() -> None:
    recent = RecentUnits([("A", 9), ("B", 1), ("C", 2)])
    recent.move(1, "k", 0)
    recent.move(1, None, 0)
    assert [uow in recent for uow in ("A", "B", "C")] == [False, False, True], "older segments leave first"
    assert (len(recent), recent.forgotten) == (1, 9)


def test_a_number_is_remembered_longer_than_its_name() -> None:
    recent = RecentUnits()
    for uow, number in (("A", 1), ("B", 2), ("D", 4)):
        recent.add(uow, number)
    recent.add("missing:3", 3, real=False)
    recent.move(2, None, 0)
    assert [recent.had(number) for number in (None, 0, 1, 2, 3, 4)] == [False, False, True, True, False, False]
    recent.move(2, None, 0)
    assert [recent.had(number) for number in (2, 3, 4, 5)] == [True, False, True, False]


def test_what_is_in_segments_is_read_back() -> None:
    recent = RecentUnits([("C", None)], [Segment("1", 1), Segment("2", 2, 9)])
    with pytest.raises(RuntimeError, match="not read"):
        assert "A" in recent
    recent.recall([("0", b"old"), ("1", digests("Z")), ("2", digests("A", "B")), ("3", digests("never"))])
    assert all(uow in recent for uow in ("Z", "A", "B", "C"))
    assert recent.stale == {"0", "3"}
    recent.move(0, None, 1)
    assert [uow in recent for uow in ("Z", "A", "B", "C")] == [False, True, True, True]


@pytest.mark.parametrize("items", [[], [("1", digests("A", "B")[:-1])]])
def test_a_segment_that_is_missing_or_broken_is_no_reason_to_go_on(items: list[tuple[str, bytes]]) -> None:
    with pytest.raises(LogCorruptError, match="missing or broken: item 1"):
        RecentUnits((), [Segment("1", 2)]).recall(items)


def test_who_decides_nothing_keeps_the_tail_alone() -> None:
    recent = RecentUnits([("A", 1)], [Segment("1", 2)])
    recent.disregard()
    recent.add("B", 2)
    recent.move(1, "2", 1)
    assert (recent.tail(), list(recent.segments), recent.stale) == ([("B", 2)], [Segment("2", 1, 1)], set())
    with pytest.raises(RuntimeError):
        assert "B" in recent
