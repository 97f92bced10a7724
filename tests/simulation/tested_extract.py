"""Safeguards of the way into the stream, each with the test that fails without it.

Those of PostgreSQL's that schedules show are in :mod:`simulation.mutations_extract`.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from simulation.mutation import Instead, Mutation, answering, value

CYCLES = "kainite.extract.cycles"
DELIVERY_TESTS = "tests/kainite/extract/cycles/test_delivery.py"
SOURCE_TESTS = "tests/kainite/capture/postgresql/test_extractor.py"
CAPTURE = "kainite.capture.postgresql"
CAPTURE_TESTS = "tests/kainite/capture/postgresql"
LARGE_TESTS = f"{CAPTURE_TESTS}/test_large_transactions.py"
REPLICATION_TESTS = f"{CAPTURE_TESTS}/test_replication.py"
MYSQL = "kainite.capture.mysql"
MYSQL_TESTS = "tests/kainite/capture/mysql"
TABLE_TESTS = "tests/kainite/replicate/test_binlog_table.py"
LOAD_TESTS = "tests/kainite_spark/load/test_binlog_table_job.py"
OPTION_CHANGES = (
    f"{MYSQL_TESTS}/test_option_changes.py"
    "::test_killed_at_any_answer_and_begun_with_any_options_each_unit_has_one_content"
)
RECONNECTS = f"{MYSQL_TESTS}/test_reconnects.py::test_each_transaction_comes_once_wherever_a_process_ends"
WRITE_TESTS = "tests/kainite/kinesis/write"
WHENEVER_IT_DIES = f"{DELIVERY_TESTS}::test_whenever_it_dies_the_source_still_has_what_is_not_on_the_stream"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


def _stored_first(original: Any) -> Any:
    async def deliver(self: Any, group: Sequence[Any]) -> None:
        await self.store(group[-1].next_place)
        await original(self, group)

    return deliver


def _last_alone(original: Any) -> Any:
    """Puts the messages of the last cycle of a group alone."""

    async def deliver(self: Any, group: Sequence[Any]) -> None:
        await original(self, group[-1:])

    return deliver


def _start_alone(original: Any) -> Any:
    return lambda offsets, place, stored: original(offsets, place, None)


def _stored_is_the_start(original: Any) -> Any:
    """Answers a request as if all before its start were stored."""

    def answer(self: Any, request: bytes) -> Any:
        asked = orjson.loads(request)
        return original(self, orjson.dumps({**asked, "stored": asked["start"]}))

    return answer


def _asked_at_once(original: Any) -> Any:
    async def may_ask(self: Any) -> bool:
        if self._extractor is not None and self._extractor.broken:
            self._drop_extractor()
        return not self._stop.is_set()

    return may_ask


def _one_key_for_all(original: Any) -> Any:
    def aggregated(records: Any, limit: int) -> Any:
        told = list(records)
        return original([replace(record, hash_key=told[0].hash_key) for record in told], limit)

    return aggregated


def _newest_first(original: Any) -> Any:
    return lambda records, limit: original(list(records)[::-1], limit)


def _in_turn(original: Any) -> Any:
    """Lays records over the lanes in turn, whatever their shards are."""

    def lanes(records: Sequence[Any], shard_of: Any, most: int = 4) -> Any:
        return [lane for lane in (list(records[place::most]) for place in range(most)) if lane]

    return lanes


def _flagged_alone(original: Any) -> Any:
    """Takes the columns of the replica identity for the primary key."""
    return lambda relation, row, known: {column.name for column in relation.columns if column.is_key}


def _known_alone(original: Any) -> Any:
    """Takes what an insert has of the key for the key."""
    return lambda relation, key: set(key) & {column.name for column in relation.columns}


def _truncate_as_nothing(original: Any) -> Any:
    """Passes TRUNCATE over although it is to fail its unit."""

    def change(self: Any, change: Any) -> Any:
        from kainite.capture.truncate import OnTruncate

        self._on_truncate = OnTruncate.SKIP
        return original(self, change)

    return change


def _skipped_uncounted(original: Any) -> Any:
    """Gives a TRUNCATE that is skipped no place in its transaction."""

    def change(self: Any, change: Any) -> Any:
        before = self._open.changes
        records = list(original(self, change))
        if not records:
            self._open.changes, self._open.truncates = before, self._open.truncates - 1
        return iter(records)

    return change


def _waits_alone(original: Any) -> Any:
    """Waits for the pipe, and tells the source nothing."""

    def wait(self: Any) -> None:
        select.select([], [self._descriptor], [])

    return wait


def _without_a_check(original: Any) -> Any:
    """Joins whatever pieces are there."""
    return lambda image, pieces: "".join(pieces[index] for index in range(image.total))


def _as_before(original: Any) -> Any:
    """Ends a transaction, and leaves the place where it was: the next process reads the transaction again."""

    def end(self: Any, *given: Any) -> Any:
        place = self.ends
        yield from original(self, *given)
        self.ends = place

    return end


def _as_the_server_is(original: Any) -> Any:
    """Gives the place to which the server has written, in place of that to which it was read."""

    def give(self: Any, read: Any, **more: Any) -> Any:
        read.ends = read.source.look(read.ends).end
        return original(self, read, **more)

    return give


def _unnoted(original: Any) -> Any:
    """Forgets the XA transactions that are prepared."""

    def give(self: Any, read: Any, **more: Any) -> Any:
        read.prepared.clear()
        return original(self, read, **more)

    return give


def _boundary_where_it_begins(original: Any) -> Any:
    """Lets the options of a process hold from its offset on."""

    def begin(self: Any, noted: Any, end: Any) -> None:
        original(self, noted, end)
        self._boundary = None

    return begin


def _asked_ahead(original: Any) -> Any:
    return lambda self, read, **_: original(self, read)


def _found_whole(original: Any) -> Any:
    """Leaves out the look under the lock at what the extraction has read."""

    def go_live(self: Any) -> None:
        original(replace(self, check_point=lambda: None))

    return go_live


OFF: tuple[tuple[Mutation, str], ...] = (
    _off("a place is stored when its messages are put", f"{CYCLES}.delivery:Delivery._deliver", _stored_first,
         WHENEVER_IT_DIES),
    _off("messages of each cycle of a put", f"{CYCLES}.delivery:Delivery._deliver", _last_alone, WHENEVER_IT_DIES),
    _off("what is stored is told to the source", f"{CYCLES}.cycle:request_of", _start_alone, WHENEVER_IT_DIES),
    _off("a fresh process is asked when nothing waits", f"{CYCLES}.cyclic_extraction:CyclicExtraction._may_ask",
         _asked_at_once,
         f"{DELIVERY_TESTS}::test_an_extractor_that_dies_is_asked_again_when_what_it_gave_is_stored"),
    _off("PostgreSQL forgets what is stored, and no more",
         "kainite.capture.postgresql.extractor:PostgresExtractor.answer",
         _stored_is_the_start,
         f"{SOURCE_TESTS}::test_asked_ahead_it_acknowledges_what_is_stored_and_no_more"),
    _off("a request follows the last answer", "kainite.capture.postgresql.offset:Offset.__ne__", answering(False),
         f"{SOURCE_TESTS}::test_a_request_that_does_not_follow_its_last_answer_is_refused"),
    _off("a slot ahead of the offset is refused", f"{CAPTURE}.replication:_check_slot", answering(None),
         f"{REPLICATION_TESTS}::test_a_slot_that_is_ahead_of_the_reader_is_refused"),
    _off("an offset of another source is refused", f"{CAPTURE}.replication:check_source", answering(None),
         f"{SOURCE_TESTS}::test_an_offset_says_which_source_it_was_read_from_and_another_one_is_refused"),
    _off("a replica identity that does not tell the key is refused", f"{CAPTURE}.records:_key_columns", _flagged_alone,
         f"{CAPTURE_TESTS}/test_records.py::test_a_change_that_does_not_tell_its_key_is_refused_and_the_rest_goes_on"),
    _off("an insert has all of its key", f"{CAPTURE}.records:_key_of_insert", _known_alone,
         f"{CAPTURE_TESTS}/test_records.py::test_an_insert_from_before_the_key_had_another_column_is_refused"),
    _off("a TRUNCATE fails its unit", f"{CAPTURE}.units:NumberedUnits.change", _truncate_as_nothing,
         f"{SOURCE_TESTS}::test_a_truncate_fails_its_unit_and_what_follows_is_extracted"),
    _off("a TRUNCATE takes a place and a number though it is skipped", f"{CAPTURE}.units:NumberedUnits.change",
         _skipped_uncounted,
         f"{CAPTURE_TESTS}/test_units.py::test_numbers_ordinals_and_ends_do_not_depend_on_what_truncate_does"),
    _off("the binlog's place is behind what was given", f"{MYSQL}.source_transactions:SourceTransactions._end",
         _as_before, RECONNECTS),
    _off("the binlog's place is no further than what was given", f"{MYSQL}.extractor:MysqlExtractor._give",
         _as_the_server_is, RECONNECTS),
    _off("prepared XA transactions are noted", f"{MYSQL}.extractor:MysqlExtractor._give", _unnoted,
         f"{MYSQL_TESTS}/test_source_transactions.py::test_xa_transactions_are_given_when_they_commit"),
    _off("a binlog that is thrown away is noticed", f"{MYSQL}.extractor:check_still_there", answering(True),
         f"{MYSQL_TESTS}/test_still_there.py::test_a_reset_while_the_binlog_is_read_is_refused"),
    _off("an offset of another binlog is refused", f"{MYSQL}.source:check_gtids", answering(None),
         f"{MYSQL_TESTS}/test_extractor.py::test_an_offset_of_another_server_is_refused"),
    _off("a load begins with what the extraction reads", "kainite.replicate.binlog_table:check_read", answering(None),
         f"{TABLE_TESTS}::test_an_extraction_that_reads_other_tables_is_told"),
    _off("options change behind all that may have been put", f"{MYSQL}.taken_options:OptionsInForce.begin",
         _boundary_where_it_begins, OPTION_CHANGES),
    _off("other options are stored before they hold", f"{MYSQL}.extractor:MysqlExtractor._give", _asked_ahead,
         OPTION_CHANGES),
    _off("comments hide no statement that replaces rows", f"{MYSQL}.statements:without_comments", value(str.strip),
         f"{MYSQL_TESTS}/test_source_transactions.py"
         "::test_rows_that_a_statement_replaces_without_naming_them_fail_its_unit"),
    _off("names of a server that keeps them in lower case",
         f"{MYSQL}.statements:LoggedStatement.in_lower_case", value(lambda self: self),
         f"{MYSQL_TESTS}/test_source_transactions.py"
         "::test_a_statement_names_tables_in_any_case_where_the_server_does_not_tell_them_apart"),
    _off("a copy behind a gap is worth nothing", "kainite.replicate.binlog_table:check_point", answering(None),
         f"{TABLE_TESTS}::test_a_copy_from_before_a_gap_is_worth_nothing"),
    _off("no table goes live with a gap", "kainite_spark.load.catch_up:CatchUp._go_live", _found_whole,
         f"{LOAD_TESTS}::test_an_extraction_that_leaves_the_table_out_while_it_catches_up_ends_the_addition"),
    _off("what foreign keys do beside the binlog is not loaded by itself",
         "kainite.replicate.binlog_table:_check_actions", answering(None),
         f"{TABLE_TESTS}::test_what_cannot_be_loaded_by_itself_is_refused"),
    _off("a load ends with the binlog that it follows", "kainite_spark.load.binlog_copy:check_offset", answering(None),
         f"{LOAD_TESTS}::test_a_binlog_that_is_thrown_away_meanwhile_ends_the_load"),
    _off("the source hears of an extractor that waits", "kainite.capture.patient_output:PatientOutput._wait",
         _waits_alone,
         f"{LARGE_TESTS}::test_the_source_does_not_cut_an_extractor_whose_answer_nobody_takes"),
    _off("pieces of a row are its own", "kainite.processors.row_pieces:joined", _without_a_check,
         "tests/kainite/processors/test_row_pieces.py::test_pieces_of_another_text_are_no_row"),
    _off("one hash key in an aggregate", "kainite.kinesis.write.aggregating:aggregated", _one_key_for_all,
         f"{WRITE_TESTS}/test_aggregating.py"
         "::test_each_record_comes_out_once_and_in_order_however_the_stream_was_cut"),
    _off("order in an aggregate", "kainite.kinesis.write.aggregating:aggregated", _newest_first,
         f"{WRITE_TESTS}/test_aggregating.py"
         "::test_each_record_comes_out_once_and_in_order_however_the_stream_was_cut"),
    _off("one lane for a shard", "kainite.kinesis.write.put:lanes", _in_turn,
         f"{WRITE_TESTS}/test_put.py::test_each_shard_has_one_lane_and_its_records_keep_their_order"),
)  # fmt: skip
"""The safeguards and their tests."""
