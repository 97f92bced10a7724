"""A person gives up numbers that never come; no unit that the log has is gone past."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire
from kainite.log.format.entry import Entry, Fault, UnitMeta
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.skipping import skip
from kainite.settings import UowOrder, UowSettings
from kainite.uow.delta import MAX_NATURAL
from kainite.uow.fragment import Fragment
from support.log_builders import fragment

RULES = UowSettings(order=UowOrder.DENSE)


class Log:
    def __init__(self, *fragments: Fragment) -> None:
        self.state = FoldedLog()
        self.entries: list[Entry] = collect(self.state, RULES, "s", Position(1), fragments, 0)

    def ask(self, number: object, request_id: str = "r", rules: UowSettings = RULES) -> Mapping[str, str]:
        journal = Journal(self.state, 0)
        answer = skip(journal, rules, request_id, {"action": "skip", "number": str(number), "by": "me"})
        self.entries += journal.entries
        return answer

    def units(self) -> list[tuple[str, Fault | None]]:
        return [(entry.meta.uow, entry.meta.fault) for entry in self.entries if isinstance(entry.meta, UnitMeta)]


def test_the_units_behind_the_numbers_go_and_one_failed_unit_says_who_asked() -> None:
    log = Log(fragment("T-4", [1], count=1, number=4), fragment("T-5", [1], count=1, number=5))
    assert log.ask(3) == {"result": "ok", "message": "numbers 1 to 3 are given up; number 4 is next"}
    assert log.units() == [("missing:1-3", Fault.MISSING_NUMBER), ("T-4", None), ("T-5", None)]
    missing = log.state.find("missing:1-3")
    assert missing is not None
    assert "skipped by me" in str(missing.cause)
    log.state = snapshot.load(snapshot.dump(log.state))
    assert log.ask(9)["message"] == "done before"
    assert len(log.units()) == 3


def test_a_unit_that_comes_after_its_number_was_given_up_fails_and_can_be_retried() -> None:
    log = Log(fragment("T-2", [1], count=1, number=2))
    log.ask(1)
    collect(log.state, RULES, "s", Position(2), [fragment("T-1", [1], count=1, number=1)], 0)
    late = log.state.find("T-1")
    assert late is not None
    assert (late.fault, late.obstacle) == (Fault.LATE_NUMBER, None)


def test_the_order_goes_on_behind_a_number_that_was_too_far() -> None:
    log = Log(fragment("far", [1], count=1, number=10**15))
    log.entries += expire(log.state, RULES, 0, ["far"])
    assert log.units() == [("far", Fault.FAR_NUMBER)]
    assert log.ask(10**15)["result"] == "ok"
    log.entries += collect(log.state, RULES, "s", Position(2), [fragment("next", [1], count=1, number=10**15 + 1)], 0)
    assert log.units()[-1] == ("next", None)


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (2, "unit T-2 has number 2 and is being collected: skip at most 1"),
        (9, "unit T-2 has number 2"),
        (0, "number 1 is awaited, which is beyond 0"),
        ("x", "no number of a unit"),
        ("", "no number of a unit"),
        ("٣", "no number of a unit"),
        (MAX_NATURAL, "no number of a unit"),
        ("9" * 5_000, "no number of a unit"),
    ],
)
def test_what_would_go_past_a_unit_or_means_nothing_is_refused(number: object, why: str) -> None:
    log = Log(fragment("T-2", [1], count=2, number=2))
    answer = log.ask(number)
    assert answer["result"] == "refused"
    assert why in answer["message"]
    assert log.units() == []


def test_there_is_nothing_to_skip_where_numbers_have_no_order() -> None:
    assert "not dense" in Log().ask(1, rules=UowSettings())["message"]
