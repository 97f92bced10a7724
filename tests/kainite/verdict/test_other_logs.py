"""The check on whether all workers collect into one log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.leases.administration.report import LeaseRow, ShardState
from kainite.observe.check import Level
from kainite.verdict.facts import LeaseFacts
from kainite.verdict.other_logs import NAME, differing_log, one_log_check
from support.verdicts import daemon, row, well


@pytest.mark.parametrize(
    ("lease", "own", "told"),
    [
        (row(log="a/1"), "a/0", True),
        (row(log="a/1"), "", True),
        (row(log="a/0"), "a/0", False),
        (row(), "a/0", False),
        (row(log="a/1", state=ShardState.EXPIRED), "a/0", False),
        (row(log="a/1", state=ShardState.FINISHED), "a/0", False),
    ],
    ids=["another", "no units of work here", "the same", "not noted", "dead", "finished"],
)
def test_a_worker_that_may_read_with_another_log_is_told(lease: LeaseRow, own: str, told: bool) -> None:
    checks = list(one_log_check(replace(well(leases=LeaseFacts((lease,))), collects_into=own)))
    assert [(check.name, check.level) for check in checks] == [(NAME, Level.BROKEN)] * told
    assert all(("has no units of work" in check.cause) == (not own) for check in checks)


def test_a_daemon_that_takes_no_shard_for_that_is_told_where_the_leases_agree_with_the_file() -> None:
    answer = daemon(checks=[differing_log("w", "a/0", "a/1").as_json()])
    facts = replace(well(leases=LeaseFacts((row(log="a/0"),)), daemons=(answer,)), collects_into="a/0")
    (check,) = one_log_check(facts)
    assert check.level is Level.BROKEN
    assert check.cause.startswith("daemon h:1: worker w collects this application's shards into log a/0, and this")
