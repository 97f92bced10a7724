"""The true state of a shard, by what its lease, its log and its daemon say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kainite.leases.administration.report import Pulse, ShardState
from kainite.log.state.summary import ShardFigure
from kainite.observe.check import Level
from kainite.verdict.facts import Facts, LeaseFacts
from kainite.verdict.shards import shard_check, shard_views
from support.verdicts import SHARD, daemon, log, row, summary, told, well


def only(facts: Facts) -> tuple[str, Level]:
    (view,) = shard_views(facts)
    return view.state, view.level


def without_log(**fields: Any) -> Facts:
    return well(log=None, leases=LeaseFacts((row(**fields),)))


@pytest.mark.parametrize(
    ("facts", "state", "level"),
    [
        (well(), "being read", Level.OK),
        (without_log(), "held", Level.UNKNOWN),
        (without_log(pulse=Pulse.FRESH), "held", Level.OK),
        (without_log(state=ShardState.WAITING), "waiting for its parents", Level.OK),
        (well(log=log(alive=False)), "held", Level.UNKNOWN),
        (well(log=log(summary=summary(unread=(ShardFigure(SHARD, None),)))), "not read", Level.BROKEN),
        (well(log=log(summary=summary(shards=9, unread=(ShardFigure("other", 1.0),)))), "being read", Level.OK),
        (well(log=log(summary=summary(shards=9, unread=(ShardFigure("other", 99.0),)))), "held", Level.UNKNOWN),
        (well(daemons=(daemon(told("quiet")),)), "being read", Level.OK),
        (well(daemons=(daemon(told("behind")),)), "behind", Level.OK),
        (well(daemons=(daemon(told("failing")),)), "failing", Level.BROKEN),
        (well(daemons=(daemon(told("stalled")),)), "stalled", Level.BROKEN),
        (well(daemons=(daemon(told("throttled")),)), "throttled", Level.DEGRADED),
    ],
)
def test_a_shard_is_told_by_what_knows_most_of_it(facts: Facts, state: str, level: Level) -> None:
    assert only(facts) == (state, level)


def test_the_log_tells_nothing_of_a_plain_streams_shard() -> None:
    """Holds though the log's worst shard is read: the summary names no shard that carries no units."""
    shard = f"1:pay:5:{SHARD}"
    known = well(leases=LeaseFacts((row(shard),)), streams=("orders", "pay"), plain=("pay",))

    assert only(known) == ("held", Level.UNKNOWN)
    assert only(replace(known, plain=())) == ("being read", Level.OK)


def test_finished_shards_are_left_out_and_shards_without_a_lease_are_told() -> None:
    facts = well(leases=LeaseFacts((row("s-0", ShardState.FINISHED),)), daemons=(daemon(told("hung")),))
    assert [(view.shard, view.state) for view in shard_views(facts)] == [(SHARD, "hung")]


def test_the_check_names_the_worst_shard_and_counts_the_others() -> None:
    rows = (row("s-1"), row("s-2", ShardState.UNOWNED, owner=None), row("s-3", ShardState.EXPIRED))
    views = shard_views(well(log=None, leases=LeaseFacts(rows)))
    check = shard_check(views, "F")
    assert (check.level, check.cause) == (Level.BROKEN, "s-2: nobody holds it, and 1 more shard")


def test_shards_that_were_not_observed_are_no_trouble() -> None:
    check = shard_check(shard_views(without_log()), "F")
    assert (check.level, check.cause) == (Level.NOTE, "1 of 1 shard: not observed whether it is read")
    assert "--wait" in check.remedy
