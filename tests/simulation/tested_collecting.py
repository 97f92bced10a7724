"""Safeguards against malformed units and unbounded collecting, each with the test that fails without it.

A schedule's source numbers its units well, its histories are short, and no code of the owner is broken in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulation.mutation import Instead, Mutation, answering, value

COLLECTING_TESTS = "tests/kainite/log/collecting/test_malformed.py"
LARGE_TESTS = "tests/kainite/log/collecting/test_too_large.py"
OWNER_TESTS = "tests/kainite/owner"
REFUSED_TESTS = "tests/kainite/peers/sharing/test_refused_appends.py"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


def _number_stays_in_the_log(original: Any) -> Any:
    def fail_number(self: Any, cause: str) -> None:
        original(self, cause)
        self.renumbered = False

    return fail_number


def _as_it_came(fragments: Sequence[Any], cause: str) -> list[Any]:
    return list(fragments)


def _all_shards(self: Any) -> float:
    least: float = self.until_ms()
    return least


OFF: tuple[tuple[Mutation, str], ...] = (
    _off("a number far ahead is not followed", "kainite.log.collecting.overdue:SKIPPED_FOR_ONE", value(2**70),
         f"{COLLECTING_TESTS}::test_one_unit_with_a_number_far_away_fails_alone"),
    _off("the log says that a unit has lost its number", "kainite.log.collecting.standing:Standing.fail_number",
         _number_stays_in_the_log,
         f"{COLLECTING_TESTS}"
         "::test_a_number_that_another_unit_took_meanwhile_is_none_of_a_unit_that_a_bad_line_fails"),
    _off("no source's unit has a name that the log gives", "kainite.log.collecting.collect:_reserved",
         value(lambda rules, fragment: fragment),
         f"{COLLECTING_TESTS}::test_a_unit_named_as_one_that_stands_for_numbers_fails_and_is_not_lost"),
    _off("a unit that is too large is not kept", "kainite.log.collecting.collect:within_bounds",
         value(lambda unit, news: news),
         f"{LARGE_TESTS}::test_one_with_more_fails_for_good_and_holds_its_tables_back"),
    _off("what a unit that is too large has touched holds its tables back", "kainite.uow.touches:TouchedSoFar.blur",
         answering(None), f"{LARGE_TESTS}::test_one_with_more_fails_for_good_and_holds_its_tables_back"),
    _off("an owner that has failed tells nothing that it has folded", "kainite.owner.append_queue:AppendQueue._check",
         answering(None), f"{REFUSED_TESTS}::test_its_units_fail_with_the_cause_and_the_log_lives_on"),
    _off("an append that breaks the owner is set aside", "kainite.peers.sharing.refused_appends:set_aside",
         value(_as_it_came), f"{REFUSED_TESTS}::test_its_units_fail_with_the_cause_and_the_log_lives_on"),
    _off("what is more than its unit is no copy", "kainite.log.collecting.collect:later_part", answering(None),
         "tests/kainite/log/collecting/test_later_parts.py"
         "::test_a_spoiled_unit_is_told_and_no_delta_of_it_is_lost_however_its_appends_are_cut"),
    _off("a late part that is sent again is a copy", "kainite.log.state.handed_out:HandedOut.add_late", answering(None),
         "tests/kainite/log/collecting/test_later_parts.py::test_a_late_part_that_is_sent_again_is_a_copy"),
    _off("what a snapshot has does not grow", "kainite.log.state.units:UnitFold._is_lent", answering(False),
         "tests/kainite/log/state/test_snapshot.py"
         "::test_what_was_captured_stays_as_it_was_while_units_go_on_collecting"),
    _off("the slowest shard is read on", "kainite.owner.reading_turn:SLACK_MS", value(-1_000),
         f"{OWNER_TESTS}/test_reading_turn.py::test_whatever_stands_on_the_shards_all_of_it_is_read"),
    _off("units that are being collected have a bound", "kainite.owner.reading_turn:collects_too_many",
         answering(False),
         f"{OWNER_TESTS}/test_reading_turn.py"
         "::test_at_the_bound_a_shard_that_is_far_ahead_waits_and_the_slowest_is_read_on"),
    _off("a child shard does not hold its parent", "kainite.log.collecting.watermark:Watermark.read_until_ms",
         value(_all_shards),
         f"{OWNER_TESTS}/test_reading_turn.py"
         "::test_a_shard_of_which_nothing_is_known_holds_the_others_unless_it_waits_for_its_parent"),
    _off("no unit is gone past by a skip", "kainite.owner.skipping:_lowest_known", answering(None),
         f"{OWNER_TESTS}/test_skipping.py::test_what_would_go_past_a_unit_or_means_nothing_is_refused"),
)  # fmt: skip
