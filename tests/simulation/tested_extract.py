"""Safeguards of the way into the stream, each with the test that fails without it; the simulator begins behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from simulation.mutations import Instead, Mutation, answering

CYCLES = "kainite.extract.cycles"
DELIVERY_TESTS = "tests/kainite/extract/cycles/test_delivery.py"
SOURCE_TESTS = "tests/kainite/capture/postgresql/test_extractor.py"
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
