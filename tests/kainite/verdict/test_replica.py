"""The checks on a replica."""

from __future__ import annotations

import pytest

from kainite.observe.check import Level
from kainite.verdict.facts import ReplicaFacts
from kainite.verdict.replica import replica_checks

DAY = 86_400.0

TABLE: list[tuple[ReplicaFacts, list[tuple[str, Level, str, str]]]] = [
    (ReplicaFacts(), []),
    (ReplicaFacts(error="no route"), [("replica", Level.NOTE, "no route", "")]),
    (ReplicaFacts(load="live"), [("replica", Level.OK, "the target is live", "")]),
    (ReplicaFacts(load="loading", loading=("a", "b", "c", "d"), ranges_left=1_200),
     [("replica", Level.NOTE, "4 tables are being loaded (a, b, c …); 1,200 ranges of rows are left", "status")]),
    (ReplicaFacts(load="live", loading=("a",), failed=(("s.t", "no room"), ("u", ""))),
     [("replica", Level.DEGRADED, "table s.t failed, and 1 more: no room", "kainite replicate reload s.t -p FILE")]),
    (ReplicaFacts(load="live", failed=(("u", ""),), given_up=(("s.t", "full"), ("v", ""))),
     [("replica", Level.DEGRADED, "table s.t was given up, and 1 more: full", "reload s.t -p FILE: nothing else")]),
    (ReplicaFacts(verdict="equal", summary="equal: 2 tables", age=30, good_age=30),
     [("verification", Level.OK, "compared 30 s ago: equal: 2 tables", "")]),
    (ReplicaFacts(verdict="different", passed=False, different=3, summary="different: 3 differ", age=30, good_age=99),
     [("verification", Level.DEGRADED, "30 s ago: different: 3 differ", "--repair")]),
    (ReplicaFacts(verdict="unsure", passed=False, age=9),
     [("verification", Level.DEGRADED, "9.0 s", "--status failed")]),
    (ReplicaFacts(verdict="incomplete", passed=False, age=3), [("verification", Level.DEGRADED, "3.0 s", "names")]),
    (ReplicaFacts(verdict="equal", every=DAY, age=1.4 * DAY, good_age=1.4 * DAY),
     [("verification", Level.OK, "compared 33.6 h", "")]),
    (ReplicaFacts(verdict="equal", every=DAY, age=1.6 * DAY, good_age=1.6 * DAY, trouble="away"),
     [("verification", Level.DEGRADED, "a comparison last passed 38.4 h ago; the latest try: away", "duty verify")]),
    (ReplicaFacts(every=DAY), [("verification", Level.DEGRADED, "last passed never", "kainite verify -p FILE")]),
    (ReplicaFacts(verdict="equal", every=DAY, age=9, good_age=9, trouble="away"),
     [("verification", Level.NOTE, "came to no result: away", "")]),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "expected"), TABLE, ids=range(len(TABLE)))
def test_each_part_is_judged(facts: ReplicaFacts, expected: list[tuple[str, Level, str, str]]) -> None:
    found = list(replica_checks(facts))
    assert [(check.name, check.level) for check in found] == [(name, level) for name, level, _, _ in expected]
    for check, (_, _, cause, remedy) in zip(found, expected, strict=True):
        assert cause in check.cause
        assert remedy in check.remedy
