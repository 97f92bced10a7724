"""The common mark of several targets, as each kind of target keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kainite.base.errors import TargetFencedError, TargetWentBackError
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mark import TargetMark
from support.stores import DATABASES, Store


@pytest.fixture
def noted(shop: Store) -> Callable[[], dict[str, int]]:
    """Gives a look at what is noted, by log."""
    shop.target.prepare_common_mark()
    query = "SELECT log_partition, everywhere_below FROM kainite_mark"
    return lambda: dict(shop.database.rows(query))


def test_the_mark_is_noted_and_never_falls(shop: Store, noted: Callable[[], dict[str, int]]) -> None:
    assert noted() == {}
    for number, (mark, kept) in enumerate([(0, 0), (7, 7), (3, 7), (7, 7), (2**40, 2**40)], start=1):
        shop.target.note_common_mark(Fence("0", 1, number), mark)
        assert noted() == {"0": kept}


def test_preparing_again_keeps_the_mark(shop: Store, noted: Callable[[], dict[str, int]]) -> None:
    shop.target.note_common_mark(Fence("0", 1, 1), 5)
    shop.target.prepare_common_mark()
    assert noted() == {"0": 5}


def test_logs_have_marks_of_their_own(shop: Store, noted: Callable[[], dict[str, int]]) -> None:
    shop.target.raise_generation("other", 1)
    shop.target.note_common_mark(Fence("other", 1, 0), 3)
    shop.target.note_common_mark(Fence("0", 1, 1), 9)
    assert noted() == {"0": 9, "other": 3}


def test_who_does_not_own_the_target_notes_nothing(shop: Store, noted: Callable[[], dict[str, int]]) -> None:
    """Shows it of a job that another one has taken over, and of a number that tasks may have."""
    shop.target.begin_micro_batch(Fence("0", 1, 4))
    with pytest.raises(TargetFencedError):
        shop.target.note_common_mark(Fence("0", 1, 4), 9)
    shop.target.raise_generation("0", 2)
    with pytest.raises(TargetFencedError):
        shop.target.note_common_mark(Fence("0", 1, 5), 9)
    assert noted() == {}


def test_a_mark_shuts_out_the_tasks_before_it(shop: Store, noted: Callable[[], dict[str, int]]) -> None:
    shop.target.note_common_mark(Fence("0", 1, 1), 9)
    with pytest.raises(TargetFencedError):
        shop.session.apply(shop.fence, [shop.unit(1, shop.insert("audit", what="late", at=1))])
    assert shop.rows("audit") == []
    assert noted() == {"0": 9}


@DATABASES
def test_a_target_that_went_back_gets_no_mark(shop: Store, noted: Callable[[], dict[str, int]]) -> None:
    with pytest.raises(TargetWentBackError):
        shop.target.note_common_mark(Fence("0", 1, 7), 9, TargetMark(1, 6))
    assert noted() == {}
