"""The checks on units without the rest: as ``/health`` of the log's owner tells them."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.log.state.summary import TargetFigure
from kainite.observe.check import Level
from kainite.verdict.units import age_s, named, unit_checks
from support.verdicts import NOW_MS, figure, summary


def test_each_part_has_one_check_also_where_all_is_well() -> None:
    checks = unit_checks(summary(), NOW_MS, 600)
    assert [check.name for check in checks] == [
        "failed units", "blocked units", "delayed units", "applying", "collecting", "room in the log",
    ]  # fmt: skip
    assert {check.level for check in checks} == {Level.OK}


def test_a_unit_that_waits_for_a_cause_of_its_own_is_not_the_apply_jobs_fault() -> None:
    old = figure(source_ms=NOW_MS - 900_000, cause="the row is locked")
    checks = unit_checks(summary(delayed=1, oldest=old, first_delayed=old), NOW_MS, 600)
    assert [check.name for check in checks if check.level.is_trouble] == ["delayed units"]


@pytest.mark.parametrize(
    ("figures", "fields", "level"),
    [
        ((0, 0, None), {}, Level.OK),
        ((2, 0, NOW_MS - 59_000), {}, Level.OK),
        ((2, 1, NOW_MS - 59_000), {}, Level.DEGRADED),
        ((2, 1, NOW_MS - 60_000), {}, Level.BROKEN),
        ((2, 0, NOW_MS - 60_000), {"paused": "paused by ann"}, Level.OK),
    ],
)
def test_a_target_whose_job_does_not_apply_is_told(
    figures: tuple[int, int, int | None], fields: dict[str, Any], level: Level
) -> None:
    told = summary(targets=(TargetFigure("crm", *figures),), **fields)
    check = unit_checks(told, NOW_MS, 600, "F")[-1]
    assert (check.name, check.level) == ("target.crm", level)
    if level is Level.BROKEN:
        assert "60 s old" in check.cause
        assert check.remedy.endswith("kainite apply -p F --target crm")


def test_units_are_told_for_people() -> None:
    assert named(None) == "none is named"
    assert named(figure(tid=None)) == "T-1"
    assert age_s(figure(source_ms=None, arrived_ms=None), NOW_MS) is None
    assert age_s(figure(source_ms=NOW_MS + 5_000), NOW_MS) == 0.0, "the source's clock is ahead"
