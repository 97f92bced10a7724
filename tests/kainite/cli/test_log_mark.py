"""``kainite log mark``: how far each target is."""

from __future__ import annotations

from kainite.cli.log_mark import lines
from kainite.log.views.target_marks import TargetMarks


def test_each_target_and_all_of_them_are_told() -> None:
    assert lines(TargetMarks(30, {"shop": 12, "crm": 30}, {})) == [
        "target.shop: 12",
        "target.crm: 30",
        "all units below 12 are applied or discarded; the log's next id is 30",
    ]


def test_an_only_target_has_no_name() -> None:
    assert lines(TargetMarks(30, {"": 12}, {})) == [
        "all units below 12 are applied or discarded; the log's next id is 30"
    ]
