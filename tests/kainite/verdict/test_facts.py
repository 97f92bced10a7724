"""When a replica's comparison is overdue, and what stands for facts that nobody has told."""

from __future__ import annotations

import pytest

from kainite.verdict.facts import LATE_INTERVALS, Facts, ReplicaFacts, SourceFacts

DAY = 86_400.0


@pytest.mark.parametrize(
    ("every", "good_age", "late"),
    [
        (None, None, False),
        (None, 100 * DAY, False),
        (DAY, None, True),
        (DAY, 0.0, False),
        (DAY, LATE_INTERVALS * DAY, False),
        (DAY, LATE_INTERVALS * DAY + 1, True),
        (60.0, 89.0, False),
        (60.0, 91.0, True),
    ],
)
def test_a_comparison_is_overdue_half_an_interval_after_its_time(
    every: float | None, good_age: float | None, late: bool
) -> None:
    assert ReplicaFacts(every=every, good_age=good_age).is_late is late


def test_a_comparison_that_did_not_pass_is_no_excuse() -> None:
    """Checks that the age of the latest one that passed counts, not that of the latest one."""
    assert ReplicaFacts(verdict="different", passed=False, every=DAY, age=1.0, good_age=2 * DAY).is_late
    assert ReplicaFacts(verdict="different", passed=False, every=DAY, age=1.0).is_late


def test_facts_that_nobody_told_are_none() -> None:
    facts = Facts("shop", "shop.properties", 0)
    assert (facts.log, facts.leases, facts.fleet, facts.replica, facts.daemons) == (None, None, None, None, ())
    assert facts.source == SourceFacts(None, None, None, None, ())
