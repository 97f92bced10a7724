"""The comparison of a target with how far the log says that it has come."""

from __future__ import annotations

import pytest

from kainite.base.errors import TargetWentBackError
from kainite_spark.targets.mark import TargetMark, check_mark

MARK = TargetMark(3, 42, (7, 8))


@pytest.mark.parametrize(
    ("found", "acknowledged"),
    [((3, 42), 2), ((3, 43), 0), ((4, -1), 0)],
    ids=["at the mark, with its units", "a later micro-batch", "a later generation"],
)
def test_a_target_that_is_far_enough(found: tuple[int, int], acknowledged: int) -> None:
    check_mark("log/0", MARK, found, acknowledged)


@pytest.mark.parametrize(
    ("found", "acknowledged", "says"),
    [
        (None, 0, "it has no mark of this log"),
        ((3, 41), 2, "its mark is generation 3, micro-batch 41"),
        ((2, 99), 2, "its mark is generation 2, micro-batch 99"),
        ((3, 42), 1, "it lacks 1 of that micro-batch's units"),
    ],
)
def test_a_target_that_went_back_is_told_with_both_marks(
    found: tuple[int, int] | None, acknowledged: int, says: str
) -> None:
    with pytest.raises(TargetWentBackError) as refused:
        check_mark("log/0", MARK, found, acknowledged)
    assert says in str(refused.value)
    assert "generation 3, micro-batch 42, with unit 8 as the last one" in str(refused.value)
    assert "--adopt-target" in str(refused.value)
