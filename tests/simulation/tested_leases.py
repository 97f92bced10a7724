"""Safeguards of what people ask of a lease's holder, each with a test that shows it.

No schedule shows them: what a child's end is blamed for matters to poison batches and to records that are left out, and
a lease that moves at a wrong moment costs a move, because each holder finds out by the counter.
"""

from __future__ import annotations

from kainite.leases.table.request_calls import owners_as_read
from simulation.mutation import Instead, Mutation, answering, value

HOLDING_TESTS = "tests/kainite/leases/holding/test_lease_requests.py"
TABLE = "kainite.leases.table"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


OFF: tuple[tuple[Mutation, str], ...] = (
    _off("one log for an application", "kainite.leases.taking.taker:other_log", answering(None),
         "tests/kainite/leases/taking/test_taker.py"
         "::test_a_worker_with_another_log_takes_nothing_and_says_so_until_the_first_one_has_stopped"),
    _off("a restart is no failure", "kainite.worker.child_restart:ChildRestart.takes", answering(False),
         "tests/kainite/worker/test_child_restart.py"
         "::test_a_hung_child_is_ended_and_the_next_one_gets_its_records_again_and_nothing_is_blamed"),
    _off("only its owner gives a lease away", f"{TABLE}.request_calls:as_read",
         answering(("attribute_exists(leaseKey)", {})),
         f"{HOLDING_TESTS}::test_a_lease_that_was_lost_while_the_child_ended_is_not_given_away"),
    _off("a late hand-off does nothing", f"{TABLE}.request_calls:as_read", value(owners_as_read),
         "tests/kainite/leases/table/test_request_calls.py"
         "::test_a_hand_off_that_arrives_late_gives_away_no_lease_that_its_holder_has_taken_again"),
    _off("a late end of a hand-over ends no later one", f"{TABLE}.lease_table:as_read", value(owners_as_read),
         "tests/kainite/leases/table/test_lease_table.py"
         "::test_an_end_of_a_hand_over_that_arrives_late_does_not_end_a_later_one_between_the_same_workers"),
    _off("a lease that was moved stays", f"{TABLE}.lease:Lease.stays", value(property(lambda self: False)),
         "tests/kainite/leases/taking/test_choice.py"
         "::test_a_lease_that_was_moved_to_its_owner_is_not_stolen_and_another_one_is"),
    _off("a lease that comes back is no namesake's", f"{TABLE}.lease:Lease.just_handed",
         value(property(lambda self: False)),
         f"{HOLDING_TESTS}::test_a_lease_that_comes_back_is_taken_at_once_by_the_worker_that_had_lost_it"),
)  # fmt: skip
