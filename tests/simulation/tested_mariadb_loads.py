"""Safeguards of loads into MariaDB, each with a test that shows it: the simulator's loads have PostgreSQL's ledger."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simulation.mutation import Instead, Mutation, answering, value

LEDGER = "kainite.replicate.mariadb_ledger"
TASKS_TESTS = "tests/kainite_spark/load/test_mariadb_tasks.py"
LEDGER_TESTS = "tests/kainite/replicate/test_mariadb_load_ledger.py"
POSITIONS_TESTS = "tests/kainite_spark/targets/mariadb/test_loaded_positions.py"


TABLE_LEDGER = "kainite.replicate.mariadb_table_ledger"
APPLY_LEDGER = "kainite_spark.targets.mariadb.ledger"
CLAIMS_TESTS = "tests/kainite_spark/targets/mariadb/test_claims.py"
TABLE_TESTS = "tests/kainite/replicate/test_mariadb_table_load.py"
KEYS_TESTS = "tests/kainite/replicate/test_mariadb_foreign_keys.py"
KEYS_LOCK_TESTS = "tests/kainite/replicate/test_mariadb_foreign_keys_lock.py"
GIVING_UP_TESTS = "tests/kainite/replicate/test_mariadb_giving_up.py"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


def _without(part: str, instead: str = "") -> Instead:
    """Takes a part out of a statement."""

    def shortened(statement: str) -> str:
        assert part in statement, part
        return statement.replace(part, instead)

    return shortened


def _of_its_own(original: Any) -> Any:
    """Gives each who asks another lock."""
    numbers = itertools.count()
    return lambda database, log: f"{original(database, log)} {next(numbers)}"


@contextmanager
def _unlocked(*_: object) -> Iterator[None]:
    yield


OFF: tuple[tuple[Mutation, str], ...] = (
    _off("MariaDB: a range is copied once", f"{LEDGER}:CLAIM", _without("AND done_at IS NULL"),
         f"{TASKS_TESTS}::test_a_driver_that_another_one_has_shut_out_copies_nothing_more"),
    _off("MariaDB: a range is copied under its own load", f"{LEDGER}:HOLD",
         _without("generation = %s", "generation >= %s"),
         f"{TASKS_TESTS}::test_a_driver_that_another_one_has_shut_out_copies_nothing_more"),
    _off("MariaDB: rows without a parent end a load", "kainite_spark.load.mariadb_tasks:_check_parents",
         answering(None),
         f"{TASKS_TESTS}::test_rows_without_a_parent_are_named_and_the_load_goes_on_when_that_is_mended"),
    _off("MariaDB: a table that is altered is copied again",
         "kainite_spark.targets.mariadb.present_tables:PresentTables.changed", answering(False),
         f"{TASKS_TESTS}::test_a_driver_that_another_one_has_shut_out_copies_nothing_more"),
    _off("MariaDB: one driver of a load", f"{LEDGER}:ONE_DRIVER", value("SELECT %s IS NOT NULL"),
         f"{LEDGER_TESTS}::test_one_driver_at_a_time_for_the_life_of_its_session"),
    _off("MariaDB: a point is of its own load", f"{LEDGER}:IS_ITS", _without("AND generation = %s", "AND %s > 0"),
         f"{LEDGER_TESTS}::test_a_driver_whose_generation_is_not_the_loads_may_write_nothing"),
    _off("MariaDB: a load is live when all steps are done", f"{LEDGER}:FINISH",
         _without("AND s.done_at IS NULL", "AND s.done_at IS NULL AND s.step < 0"),
         f"{LEDGER_TESTS}::test_a_load_from_its_beginning_to_its_end"),
    _off("MariaDB: a load shuts the apply job out", f"{LEDGER}:CLOSE_FENCE", _without("9223372036854775807", "0"),
         f"{POSITIONS_TESTS}::test_a_session_reads_the_point_of_a_load_that_came_in_between"),
    _off("MariaDB: nobody applies before a load is live",
         "kainite_spark.targets.mariadb.target:refuse_while_loading", answering(None),
         f"{POSITIONS_TESTS}::test_no_apply_job_gets_in_before_the_target_is_live"),
    _off("MariaDB: a unit before the copy is left out",
         "kainite_spark.targets.held_deltas:KnownTables._reduced", value(lambda self, unit, latest: unit),
         f"{POSITIONS_TESTS}::test_what_the_copy_has_is_left_out_and_acknowledged"),
    _off("MariaDB: version of the tables' states", f"{TABLE_LEDGER}:RAISE_VERSION",
         _without("tables = tables + 1", "tables = tables"),
         f"{CLAIMS_TESTS}::test_a_session_that_knew_the_tables_before_holds_and_writes_as_they_are_now"),
    _off("MariaDB: states do not change under a transaction", f"{APPLY_LEDGER}:SHARE_FENCE",
         _without(" LOCK IN SHARE MODE"),
         f"{CLAIMS_TESTS}::test_states_do_not_change_under_a_transaction_that_has_read_them"),
    _off("MariaDB: what is held is taken under its load's generation", f"{TABLE_LEDGER}:HOLD_LOAD",
         _without("generation = %s", "generation >= %s"),
         f"{CLAIMS_TESTS}::test_what_is_held_is_taken_once_and_under_the_loads_generation_alone"),
    _off("MariaDB: a table goes live behind its point", f"{TABLE_LEDGER}:GO_LIVE", _without("AND reached >= position"),
         f"{TABLE_TESTS}::test_a_table_is_not_live_before_its_point_is_passed"),
    _off("MariaDB: a table goes live when nothing is held", f"{TABLE_LEDGER}:GO_LIVE",
         _without("h.table_name = t.table_name", "h.table_name = t.table_name AND h.place < 0"),
         f"{TABLE_TESTS}::test_a_load_from_its_beginning_to_its_end"),
    _off("MariaDB: a load of everything ends the loads of tables", f"{TABLE_LEDGER}:END_OWN_LOADS",
         _without("generation = generation + 1, position = NULL", "position = NULL"),
         f"{TABLE_TESTS}::test_a_load_of_everything_ends_the_loads_of_tables"),
    _off("MariaDB: a load of everything ends the drivers of tables",
         "kainite.replicate.mariadb_load_ledger:MariadbLoadLedger._end_loads_of_tables", answering(None),
         f"{TABLE_TESTS}::test_a_load_of_everything_ends_the_loads_of_tables"),
    _off("MariaDB: a note of a foreign key that is off again stays", "kainite.replicate.mariadb_foreign_keys:_is_there",
         answering(True), f"{KEYS_TESTS}::test_a_load_that_takes_a_foreign_key_off_meanwhile_keeps_its_note"),
    _off("MariaDB: one makes or drops foreign keys at a time", f"{TABLE_LEDGER}:foreign_keys_lock",
         _of_its_own, f"{KEYS_LOCK_TESTS}::test_one_makes_or_drops_foreign_keys_at_a_time"),
    _off("MariaDB: no cut-over while somebody drops foreign keys",
         "kainite.replicate.mariadb_load_ledger:foreign_keys_alone", value(_unlocked),
         f"{TABLE_TESTS}::test_a_target_is_not_cut_over_between_the_look_at_its_state_and_the_foreign_keys"),
    _off("MariaDB: no cut-over with foreign keys off", f"{LEDGER}:CUT_OVER",
         _without("k.cause IS NULL", "k.cause IS NULL AND k.child_name = ''"),
         f"{TABLE_TESTS}::test_a_target_with_a_table_that_is_not_live_or_foreign_keys_that_are_off_is_not_cut_over"),
    _off("MariaDB: a load that is refused gives foreign keys back", "kainite.replicate.mariadb_table_load:make_again",
         answering([]), f"{TABLE_TESTS}::test_a_load_that_is_refused_behind_the_foreign_keys_gives_them_back"),
    _off("MariaDB: what a load has begun to hold is not dropped", "kainite.replicate.mariadb_giving_up:IS_GIVEN_UP",
         _without("AND state = 'given up'"),
         f"{GIVING_UP_TESTS}::test_a_load_that_has_begun_keeps_what_it_holds"),
    _off("MariaDB: a table that was given up is loaded anew", "kainite.replicate.mariadb_giving_up:FORGET_POINT",
         _without("position = NULL, snapshot = NULL", "state = state"),
         f"{GIVING_UP_TESTS}::test_a_table_is_given_up_when_too_much_is_held_and_its_driver_is_gone"),
)  # fmt: skip
