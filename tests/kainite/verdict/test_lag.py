"""The lag from the source's commit, stage by stage."""

from __future__ import annotations

from kainite.log.state.summary import ShardFigure
from kainite.verdict.facts import SourceFacts
from kainite.verdict.lag import LagStage, lag_of
from support.verdicts import NOW_MS, daemon, figure, log, summary, told, well


def parts(facts: object) -> dict[LagStage, tuple[int | None, float | None]]:
    return {part.stage: (part.units, part.seconds) for part in lag_of(facts).parts}  # type: ignore[arg-type]


def test_each_stage_has_its_units_and_seconds() -> None:
    figures = summary(
        in_progress=2, failed=1, collecting=4, queued=0, oldest=figure(),
        oldest_open=figure("half", None, "collecting", source_ms=None, arrived_ms=NOW_MS - 3_000),
        unread=(ShardFigure("s", 2.5),),
    )  # fmt: skip
    facts = well(log=log(summary=figures))
    assert parts(facts) == {
        LagStage.SOURCE: (1, 0.5),
        LagStage.STREAM: (None, 2.5),
        LagStage.COLLECT: (4, 3.0),
        LagStage.LOG: (0, 0.0),
        LagStage.APPLY: (3, 12.0),
    }
    assert lag_of(facts).seconds == 12.0
    assert lag_of(facts).oldest == figure()


def test_appends_that_wait_have_a_number_and_no_age() -> None:
    assert parts(well(log=log(summary=summary(queued=5))))[LagStage.LOG] == (5, None)


def test_an_extractor_that_stands_still_is_the_lag_where_everything_else_is_done() -> None:
    assert lag_of(well(source=SourceFacts(seconds=7_200.0))).seconds == 7_200.0
    assert lag_of(well(source=SourceFacts())).seconds == 1.0, "how far the stream is read"


def test_the_age_of_an_idle_sources_newest_commit_is_told_and_is_no_lag() -> None:
    lag = lag_of(well(source=SourceFacts(newest=7_300.0)))
    assert (lag.seconds, lag.parts[0].seconds) == (1.0, None)
    assert lag.parts[0].note == "the newest commit on the stream is 2.0 h old"


def test_a_unit_without_the_sources_time_counts_from_its_arrival() -> None:
    unit = figure(source_ms=None)
    assert lag_of(well(log=log(summary=summary(in_progress=1, oldest=unit)))).seconds == 11.0


def test_without_a_log_the_daemons_tell_how_far_the_stream_is_read() -> None:
    facts = well(log=None, daemons=(daemon(told(behind_millis=4_000)),), source=SourceFacts())
    assert parts(facts) == {LagStage.SOURCE: (None, None), LagStage.STREAM: (None, 4.0)}
    assert lag_of(facts).seconds == 4.0


def test_where_nothing_tells_nothing_is_zero() -> None:
    facts = well(log=None, source=SourceFacts())
    assert lag_of(facts).seconds is None
    assert parts(facts) == {LagStage.SOURCE: (None, None), LagStage.STREAM: (None, None)}
