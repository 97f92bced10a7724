"""How several targets stand: what the verdict says of each, beside what the log has of it."""

from __future__ import annotations

from kainite.console.target_view import UNKNOWN, targets_view
from kainite.log.format.entry import UnitMeta
from kainite.log.state.summary import TargetFigure
from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_targets import TargetStanding
from kainite.observe.check import Level
from kainite.verdict.judging import judge
from support.verdicts import log, summary, well

FIRST = UnitState(7, UnitMeta("T", 1))
STANDINGS = (TargetStanding("shop", 100), TargetStanding("crm", 7, FIRST, {"failed": 1, "blocked": 2}))


def test_each_target_has_its_check_and_its_mark() -> None:
    told = summary(targets=(TargetFigure("shop", 0, 0), TargetFigure("crm", 3, 1)))
    found = targets_view({"shop": "PostgreSQL", "crm": "MariaDB"}, STANDINGS, judge(well(log=log(summary=told))),
                         lambda unit: 12.0 if unit is FIRST else None)  # fmt: skip
    assert found.common == 7
    assert [(each.name, each.kind, each.check.level, each.behind) for each in found.targets] == [
        ("shop", "PostgreSQL", Level.OK, 0.0), ("crm", "MariaDB", Level.DEGRADED, 12.0),
    ]  # fmt: skip
    standing = found.targets[1].standing
    assert standing is not None
    assert (standing.waiting, standing.failed, standing.blocked) == (3, 1, 2)


def test_targets_that_only_the_file_or_only_the_log_has_are_told() -> None:
    found = targets_view({"new": "SQLite"}, STANDINGS[1:], judge(well()), lambda _: None)
    assert [(each.name, each.check.level, each.check.cause == UNKNOWN, each.behind) for each in found.targets] == [
        ("new", Level.UNKNOWN, True, None), ("crm", Level.UNKNOWN, False, None),
    ]  # fmt: skip
    assert targets_view({"new": "SQLite"}, (), judge(well()), lambda _: None).common is None
