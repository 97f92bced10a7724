"""The picture of the way: its figures and levels are the verdict's."""

from __future__ import annotations

from kainite.console.way import stations
from kainite.observe.check import Level
from kainite.verdict.facts import Facts, LogFacts
from kainite.verdict.judging import judge
from support.verdicts import NOW_MS, log, summary, well


def test_where_all_is_well_each_station_says_so() -> None:
    found = stations(judge(well()), 12.34, "PostgreSQL")
    assert [station.name for station in found] == [
        "Source", "Stream", "Shards", "Collecting", "Log", "Apply", "Target",
    ]  # fmt: skip
    assert {station.level for station in found} == {Level.OK}
    assert [(station.figure, station.unit) for station in found[-2:]] == [("0", "to apply"), ("12.3", "units/s")]
    assert found[2].figure == "1 of 1"


def test_failures_and_a_pause_stand_at_the_apply_station() -> None:
    told = summary(failed=2, blocked=1_500, in_progress=1, paused="paused by ann")
    apply = stations(judge(well(log=log(summary=told))), 0, "")[-2]
    assert apply.detail == "paused, 2 failed, 1,500 blocked"
    assert apply.level is Level.DEGRADED


def test_without_a_log_the_way_ends_at_the_shards() -> None:
    assert [station.name for station in stations(judge(well(log=None)), 0, "")] == ["Source", "Stream", "Shards"]
    nothing = stations(judge(Facts("app", "f", NOW_MS, log=LogFacts("0"))), 0, "")
    assert [station.figure for station in nothing] == ["–", "–", "–"]
