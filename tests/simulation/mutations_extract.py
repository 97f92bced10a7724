"""Safeguards of the way from a source into the stream, and how soon the schedules notice."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

import orjson

from kainite.capture.postgresql.source_catalogue import SourceCatalogue
from kainite.extract.offsets.place import Place
from simulation.mutation import Mutation, answering, value

EXTRACTOR: Final = "extractor"
REFUSES: Final = "extractor refuses"
_CYCLES: Final = "kainite.extract.cycles"
_OFFSETS: Final = "kainite.extract.offsets"
_CAPTURE: Final = "kainite.capture.postgresql"


def _stored_is_the_start(original: Any) -> Any:
    """Confirms to the source what was given, in place of what is stored."""

    def answer(self: Any, request: bytes) -> Any:
        asked = orjson.loads(request)
        return original(self, orjson.dumps({**asked, "stored": asked["start"]}))

    return answer


def _stored_first(original: Any) -> Any:
    """Stores the place of answers before they are put."""

    async def deliver(self: Any, group: Sequence[Any]) -> None:
        await self.store(group[-1].next_place)
        await original(self, group)

    return deliver


def _last_alone(original: Any) -> Any:
    """Puts the last one of the answers that wait."""

    async def deliver(self: Any, group: Sequence[Any]) -> None:
        await original(self, group[-1:])

    return deliver


def _asked_at_once(original: Any) -> Any:
    """Asks a fresh process while answers of the one before still wait."""

    async def may_ask(self: Any) -> bool:
        if self._extractor is not None and self._extractor.broken:
            self._drop_extractor()
        return not self._stop.is_set()

    return may_ask


def _first_place(original: Any) -> Any:
    """Begins each run where the first one began."""

    def load(self: Any) -> Any:
        original(self)
        return Place({"lsn": "0/1718490", "number": 0})

    return load


def _looked_at_before(original: Any) -> Any:
    """Connects to the catalogue, and does not look at the slot, at which this process has looked before it waited."""

    def catalogue(self: Any, start: Any) -> Any:
        slot = self._reading.slot
        return SourceCatalogue(slot.url, slot.publication, self._reading.tables)

    return catalogue


def _received_is_safe(original: Any) -> Any:
    """Confirms whatever was received."""
    return lambda written, flushed, now_us: original(written, written, now_us)


def _put_at_once(original: Any) -> Any:
    """Puts a part of an answer before the answers that were given before it."""

    async def put_early(self: Any, messages: Any) -> None:
        await self._sink.put(messages)

    return put_early


def _from_one(original: Any) -> Any:
    """Numbers the transactions of each process from 1."""

    def made(self: Any, number: int, *rest: Any) -> None:
        original(self, 0, *rest)

    return made


def _all_taken(original: Any) -> Any:
    """Takes whatever was answered for a success."""

    def tried(self: Any, batch: Any) -> Any:
        original(self, batch)
        return [], ""

    return tried


def _refused_taken(original: Any) -> Any:
    """Takes an answer that refuses some of the records for a success; a call without an answer is none."""

    def tried(self: Any, batch: Any) -> Any:
        refused, why = original(self, batch)
        return (refused, why) if len(refused) == len(batch) else ([], "")

    return tried


def _unlocked(original: Any) -> Any:
    return lambda self: io.BytesIO()


OF_EXTRACTIONS: tuple[Mutation, ...] = (
    Mutation("the source forgets what is stored alone", f"{_CAPTURE}.extractor:PostgresExtractor.answer",
             _stored_is_the_start, 10, aim=EXTRACTOR),
    Mutation("an answer is put before its place is stored", f"{_CYCLES}.delivery:Delivery._deliver", _stored_first, 5,
             aim=EXTRACTOR),
    Mutation("each answer that waits is put", f"{_CYCLES}.delivery:Delivery._deliver", _last_alone, 40,
             aim=EXTRACTOR),
    Mutation("a fresh program is asked when nothing waits", f"{_CYCLES}.cyclic_extraction:CyclicExtraction._may_ask",
             _asked_at_once, 40, aim=EXTRACTOR),
    Mutation("a run begins at the stored place", f"{_OFFSETS}.offset_file:OffsetFile.load", _first_place, 20,
             aim=EXTRACTOR),
    Mutation("numbers go on behind the offset's", f"{_CAPTURE}.units:NumberedUnits.__init__", _from_one, 20,
             aim=EXTRACTOR),
    Mutation("what is received is not confirmed", f"{_CAPTURE}.replication:encode_status", _received_is_safe, 10,
             aim=EXTRACTOR),
    Mutation("an answer ends behind a whole transaction", f"{_CAPTURE}.units:NumberedUnits.begun",
             value(property(lambda self: False)), 40, aim=EXTRACTOR),
    Mutation("what is put early waits for the answers before it", f"{_CYCLES}.delivery:Delivery.put_early",
             _put_at_once, 40, aim=EXTRACTOR),
    Mutation("records that a call refuses are put again", "kainite.kinesis.write.put:StreamWriter._try_put",
             _refused_taken, 10, aim=EXTRACTOR),
    Mutation("a call without an answer is made again", "kainite.kinesis.write.put:StreamWriter._try_put", _all_taken,
             10, aim=EXTRACTOR),
    Mutation("a slot is not beyond the offset", f"{_CAPTURE}.replication:check_not_beyond", answering(None), 40,
             aim=REFUSES),
    Mutation("a slot is looked at again when it is held", f"{_CAPTURE}.extractor:PostgresExtractor._catalogue",
             _looked_at_before, 60, aim=EXTRACTOR),
    Mutation("a slot that has lost its WAL", f"{_CAPTURE}.replication:_check_slot", answering(None), 40, aim=REFUSES),
    Mutation("an offset of another source", f"{_CAPTURE}.replication:check_source", answering(None), 40, aim=REFUSES),
    Mutation("one extraction at a time", f"{_OFFSETS}.offset_file:OffsetFile._open_lock", _unlocked, 40,
             aim=EXTRACTOR),
)  # fmt: skip
