"""Which target a table belongs to."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogCorruptError
from kainite.settings.assignment import NO_TARGETS, TableAssignment, assignment_from

TARGETS = TableAssignment((("rest", ()), ("crm", ("crm.*", "visit")), ("old", ("crm.old*", "crm.new"))))


@pytest.mark.parametrize(
    ("table", "target"),
    [
        ("orders", "rest"),
        ("visit", "crm"),
        ("visitor", "rest"),
        ("crm.a", "crm"),
        ("crm.older", "old"),
        ("crm.new", "old"),
        ("crm.newer", "crm"),
    ],
)
def test_the_most_exact_pattern_decides(table: str, target: str) -> None:
    assert TARGETS.target_of(table) == target


def test_assignments_that_differ_have_different_digests() -> None:
    other = TableAssignment((*TARGETS.patterns[:2], ("old", ("crm.old*",))))
    digests = {each.digest for each in (TARGETS, other, NO_TARGETS, assignment_from(TARGETS.as_text()))}
    assert len(digests) == 3
    assert NO_TARGETS.digest == ""


def test_a_table_may_belong_to_no_target() -> None:
    assert TableAssignment((("crm", ("crm.*",)),)).target_of("orders") is None


def test_a_unit_has_a_part_in_each_target_with_a_table_and_in_one_at_least() -> None:
    assert TARGETS.parts(("orders", "crm.a", "items", "visit")) == {
        "rest": ("orders", "items"),
        "crm": ("crm.a", "visit"),
    }
    assert TARGETS.parts(()) == {"rest": ()}
    assert TableAssignment((("crm", ("crm.*",)),)).parts(("orders",)) == {"crm": ("orders",)}


def test_an_assignment_reads_back() -> None:
    assert assignment_from(TARGETS.as_text()) == TARGETS
    assert assignment_from(None) == assignment_from("{}") == NO_TARGETS


@pytest.mark.parametrize("text", ["{", "[]", '{"a":1}', '{"a":[1]}', '{"a":"b"}', "null", "\ud800", "[" * 100_000])
def test_what_is_no_assignment_is_a_corrupt_log(text: str) -> None:
    with pytest.raises(LogCorruptError, match="the log's targets cannot be read"):
        assignment_from(text)
