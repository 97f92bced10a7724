"""Safeguards at the edges: what targets and sources are asked, an owner that breaks; each with a test that shows it.

The simulator's target is SQLite, whose columns take any value, and it has no PostgreSQL source; so what asks them is
shown by tests on a server.
"""

from __future__ import annotations

import re
from typing import Any

from simulation.mutation import Instead, Mutation, answering, value

POSTGRESQL = "kainite_spark.targets.postgresql"
MARIADB = "kainite_spark.targets.mariadb"
CAPTURE = "kainite.capture.postgresql"
TYPES_TESTS = "tests/kainite_spark/targets/postgresql/test_column_types.py"
REPAIR_TESTS = "tests/kainite/owner/test_repairing.py"
LOG_TABLES_TESTS = "tests/kainite_spark/targets/conformance/test_log_tables.py"
EXTRACTOR_TESTS = "tests/kainite/capture/postgresql/test_extractor.py"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


def _as_it_is(self: Any, connection: Any, table: Any) -> Any:
    """Takes the catalogue's types for the target's."""
    self.tables[table.name], self.prints[table.name] = table, None
    return table


def _unknown_is_away(original: Any) -> Any:
    """Takes a code that no list has for a target that does not answer."""
    from kainite.base.errors import TargetRejectedError, TargetUnavailableError

    def about_units(error: Any, table: Any) -> Any:
        meant = original(error, table)
        listed = (error.sqlstate or "").startswith(("22", "23", "42P", "42703"))
        return meant if listed or not isinstance(meant, TargetRejectedError) else TargetUnavailableError(str(meant))

    return about_units


def _nulls_too(relation: Any, values: Any, known: Any) -> Any:
    """Takes what a partition's identity leaves out for NULL."""
    from kainite.capture.postgresql.records import _texts

    return _texts(relation, values)


def _taken_as_told(connection: Any, gid: str, *, committed: bool) -> bool:
    """Takes a transaction that MariaDB calls unknown for one that is not there."""
    from kainite_spark.targets.mariadb.prepared import _finished, xid_of

    return _finished(connection, f"XA {'COMMIT' if committed else 'ROLLBACK'} {xid_of(gid)}")


def _goes_on(self: Any, decide: Any) -> Any:
    return decide(self._state)


def _present_alone(journal: Any, _seen: Any) -> Any:
    return list(journal.state.units.values())


def _as_they_stand(rows: Any) -> Any:
    """Yields what stands up to each last piece, whichever unit it is of."""
    pieces: list[Any] = []
    for row in rows:
        pieces.append(row)
        if row.last:
            yield pieces
            pieces = []


def _in_place_of_what_it_has(original: Any) -> Any:
    """Takes tables, and gives up what is not among them, whoever else of the log is running."""

    def take(self: Any, taking: Any) -> None:
        original(self, taking)
        with self._transaction() as connection:
            found = connection.execute(
                "SELECT table_name FROM kainite_log_table WHERE log_partition = ?", (taking.log_partition,)
            ).fetchall()
            connection.executemany(
                "DELETE FROM kainite_log_table WHERE table_name = ? AND log_partition = ?",
                taking.given_up(name for (name,) in found),
            )

    return take


def _without_a_fence(self: Any, fence: Any, taking: Any, mark: Any = None) -> None:
    with self._transaction() as connection:
        connection.execute("DELETE FROM kainite_log_table WHERE log_partition = ?", (taking.log_partition,))


OFF: tuple[tuple[Mutation, str], ...] = (
    # The target.
    _off("held pieces stay with their unit", "kainite.replicate.table_load:by_unit", value(_as_they_stand),
         "tests/kainite/replicate/test_table_load.py"
         "::test_pieces_of_units_that_were_held_at_the_same_time_stay_with_their_units"),
    _off("a table with a living driver is not given up", "kainite.replicate.giving_up:LOCK_DRIVER",
         value("SELECT %s IS NOT NULL"),
         "tests/kainite/replicate/test_giving_up.py"
         "::test_a_table_is_given_up_when_too_much_is_held_and_its_driver_is_gone"),
    _off("a repair writes no row over one that the target takes for it", "kainite_spark.verify_of_file:merged_rows",
         value(lambda *_: ()),
         "tests/kainite_spark/test_verify_of_file.py"
         "::test_rows_that_the_target_takes_for_one_are_named_and_none_is_written_over_another"),
    _off("a unit that empties a table is compared with all others on it", "kainite.uow.signing:MIXED", value("one"),
         "tests/kainite/uow/test_signing.py"
         "::test_a_truncate_is_of_its_whole_table"),
    _off("types of the target", f"{POSTGRESQL}.column_types:ColumnTypes.table", value(_as_it_is),
         f"{TYPES_TESTS}::test_values_are_stored_by_the_present_type"),
    _off("types are asked for before the commit", f"{POSTGRESQL}.sent_statements:changed", answering(False),
         f"{TYPES_TESTS}::test_a_type_that_changes_in_the_middle_of_a_history"),
    _off("what the target answers is a refusal", f"{POSTGRESQL}.sent_statements:about_units", _unknown_is_away,
         "tests/kainite_spark/targets/postgresql/test_answers.py"
         "::test_a_code_that_a_trigger_raises_fails_its_unit_alone"),
    _off("columns that the target fills in", "kainite.uow.touched.family:_filled", answering(frozenset()),
         "tests/kainite/uow/touched/test_model.py"
         "::test_a_child_whose_parent_is_filled_in_stays_behind_a_parent_that_was_renewed"),
    _off("foreign keys that a load has taken off count as there",
         "kainite.targets.postgresql.catalogue:foreign_keys_off", answering(()),
         "tests/kainite/replicate/test_foreign_keys.py::test_what_is_off_counts_as_there_for_the_order_of_units"),
    _off("what is prepared in MariaDB holds the fence", f"{MARIADB}.ledger:HOLDERS",
         value("SELECT gid FROM kainite_prepared WHERE log_partition = %s AND FALSE FOR UPDATE"),
         "tests/kainite_spark/targets/conformance/test_preparing.py"
         "::test_a_prepared_transaction_holds_the_fence[mariadb-mariadb]"),
    _off("what MariaDB does not give may be held by its session", f"{MARIADB}.prepared:finish", value(_taken_as_told),
         "tests/kainite_spark/targets/mariadb/test_prepared.py"
         "::test_while_the_session_that_prepared_lives_no_other_one_finishes"),
    _off("a decision outlives that its target is taken out",
         "kainite_spark.targets.atomic.decisions:Decisions.elsewhere", answering({}),
         "tests/kainite_spark/targets/atomic/test_resolve_report.py"
         "::test_a_target_that_was_taken_out_with_a_decided_part_is_named"),
    _off("a target that is away is asked again for its tables", "kainite_spark.driver.current_target:TRIES", value(1),
         "tests/kainite_spark/driver/test_schema_changes.py::TestANewNullableColumn"
         "::test_fails_no_unit_where_the_target_is_away_or_busy_when_its_tables_are_looked_at"),
    _off("who waits for the job that runs frees no table",
         "kainite_spark.targets.sqlite.target:SqliteTarget.take_tables", _in_place_of_what_it_has,
         f"{LOG_TABLES_TESTS}::test_a_job_that_waits_for_the_one_that_runs_gives_nothing_up[sqlite]"),
    _off("a table is given up under the fence", "kainite_spark.targets.sqlite.target:SqliteTarget.give_up_tables",
         value(_without_a_fence),
         f"{LOG_TABLES_TESTS}::test_a_job_that_was_taken_over_gives_nothing_up[sqlite]"),
    _off("one log at a time takes tables of MariaDB", f"{MARIADB}.log_tables:_ONE_AT_A_TIME",
         value("SELECT 1"),
         f"{LOG_TABLES_TESTS}::test_logs_that_begin_together_do_not_keep_each_other_from_their_tables[mariadb]"),
    # A load.
    _off("fence of a load's tasks", "kainite.replicate.ledger:HOLD",
         lambda statement: statement.replace("generation = %s", "%s > 0"),
         "tests/kainite_spark/load/test_tasks.py"
         "::test_a_task_without_its_snapshot_and_one_of_another_generation_say_so"),
    _off("a load knows a target that went back", "kainite_spark.load.takeover:_is_behind", answering(False),
         "tests/kainite_spark/load/test_takeover.py"
         "::test_a_load_repairs_a_target_that_went_back_and_one_that_is_empty"),
    # The owner.
    _off("a repair is not put over what is newer", "kainite.owner.repairing:_meets", answering(None),
         f"{REPAIR_TESTS}::test_after_any_history_a_repaired_row_is_as_the_source_had_it_there"),
    _off("nor over what is newer and resolved", "kainite.owner.repairing:_others", value(_present_alone),
         f"{REPAIR_TESTS}::test_after_any_history_a_repaired_row_is_as_the_source_had_it_there"),
    _off("a repair has a place in the source's WAL", "kainite.capture.postgresql.transactions:_NAME",
         value(re.compile(r"pg-\d+-([0-9A-F]+/[0-9A-F]+)")),
         "tests/kainite/capture/postgresql/test_transactions.py"
         "::test_a_units_name_tells_its_place_in_the_wal"),
    _off("an owner that broke in a decision ends", "kainite.owner.durable_writing:DurableWriting.decided",
         value(_goes_on), "tests/kainite/owner/test_durable_writing.py"
         "::test_a_decision_that_breaks_after_it_has_folded_an_entry_ends_the_owner"),
    _off("names that have moved are deleted", "kainite.owner.upkeep:deletable", answering(()),
         "tests/kainite/owner/test_names.py"
         "::test_items_whose_names_have_left_are_deleted"),
    # The source.
    _off("the source of an offset", f"{CAPTURE}.replication:check_source", answering(None),
         f"{EXTRACTOR_TESTS}::test_an_offset_says_which_source_it_was_read_from_and_another_one_is_refused"),
    _off("the publication is looked at", f"{CAPTURE}.source_catalogue:SourceCatalogue._check_publication",
         answering(None),
         f"{EXTRACTOR_TESTS}::test_a_publication_that_is_not_there_is_said_before_anything_is_skipped"),
    _off("the publication is looked at again", f"{CAPTURE}.source_catalogue:SourceCatalogue._check_left",
         answering(None),
         f"{EXTRACTOR_TESTS}::test_the_publication_is_looked_at_when_a_table_is_described_again"),
    _off("a NULL of a partition is no value", f"{CAPTURE}.records:_old", value(_nulls_too),
         "tests/kainite/capture/postgresql/test_records.py"
         "::test_a_null_of_a_partitioned_tables_old_row_is_no_value"),
    # The stream.
    _off("records that have vanished", "kainite.kinesis.read.continuity:Continuity.begins", answering(None),
         "tests/kainite/kinesis/read/test_continuity.py"
         "::test_records_that_vanish_until_an_iterator_expires_are_told"),
)  # fmt: skip
"""The safeguards and their tests."""
