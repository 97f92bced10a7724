"""Safeguards of loads into MariaDB, each with a test that shows it: the simulator's loads have PostgreSQL's ledger."""

from __future__ import annotations

from simulation.mutation import Instead, Mutation, answering, value

LEDGER = "kainite.replicate.mariadb_ledger"
TASKS_TESTS = "tests/kainite_spark/load/test_mariadb_tasks.py"
LEDGER_TESTS = "tests/kainite/replicate/test_mariadb_load_ledger.py"
POSITIONS_TESTS = "tests/kainite_spark/targets/mariadb/test_loaded_positions.py"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


def _without(part: str, instead: str = "") -> Instead:
    """Takes a part out of a statement."""

    def shortened(statement: str) -> str:
        assert part in statement, part
        return statement.replace(part, instead)

    return shortened


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
         "kainite_spark.targets.mariadb.loaded_positions:LoadedPositions._reduced", value(lambda self, unit: unit),
         f"{POSITIONS_TESTS}::test_what_the_copy_has_is_left_out_and_acknowledged"),
)  # fmt: skip
