"""Cycles that are asked for ahead: what is stored, what the source may forget, and what a crash leaves behind."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.errors import StreamError
from kainite.base.record import RawRecord
from kainite.base.retry import Backoff
from kainite.extract.cycles.cycle import Ask, Cycle
from kainite.extract.cycles.cyclic_extraction import CyclicExtraction
from kainite.extract.cycles.delivery import Delivery
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.extract.output.sink import Aggregation, Sink
from kainite.extract.patience import Patience
from kainite.extract.progress import ExtractionProgress
from kainite.extract.setbacks import Setbacks
from kainite.extract.status import ExtractStatus
from kainite.kinesis.aggregation import EVERY_KEY, expand
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard
from kainite.kinesis.write.put import StreamWriter
from kainite.settings import ChildSettings, ExtractMode, ExtractOffsets, ExtractSettings, ExtractSpread
from support.extract_bench import CHILDREN, SILENT
from support.waiting import until

LIMIT = 30.0


@dataclass
class Stream:
    """A double of Kinesis that takes nothing while ``closed`` is set, and then fails with ``error``, if any."""

    records: list[bytes] = field(default_factory=list)
    calls: int = 0
    open: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None

    def put_records(self, StreamName: str, Records: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.calls += 1
        assert self.open.wait(LIMIT)
        if self.error is not None:
            raise self.error
        self.records += [entry["Data"] for entry in Records]
        return {"Records": [{"SequenceNumber": "1", "ShardId": "0"} for _ in Records]}

    def list_shards(self) -> tuple[Shard, ...]:
        return (Shard("0", hash_range=EVERY_KEY),)

    def sink(self, aggregation: Aggregation | None = None) -> Sink:
        lister, writer = cast(StreamClient, self), StreamWriter(cast(Any, self), "s")
        return Sink(lister, writer, ExtractSpread.UNIT, 60.0, Patience(0.01, 0.01, 2), aggregation)

    def units(self) -> list[tuple[str, int]]:
        raw = [RawRecord("1", "k", b64encode(r).decode()) for r in self.records]
        bodies = [orjson.loads(b64decode(record.data or "")) for record in expand(raw)]
        return sorted((body["uow"], body.get("ordinal", 2)) for body in bodies)


@dataclass
class Run:
    """An extraction of ``tests/children/extractor.py`` onto the stream."""

    folder: Path
    stream: Stream
    said: Callable[[], list[str]]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    begin: Place = field(default_factory=lambda: Place(0))

    @property
    def file(self) -> OffsetFile:
        return OffsetFile(self.folder / "offset", "s", ExtractOffsets.KAINITE)

    def extraction(
        self, units: int, fault: str = "", ahead_bytes: int = 2**20, aggregation: Aggregation | None = None
    ) -> CyclicExtraction:
        command = (sys.executable, str(CHILDREN / "extractor.py"), str(units), str(self.folder), fault)
        extract = ExtractSettings(
            command, ExtractMode.CYCLIC, ExtractOffsets.KAINITE, interval=0.01, ahead_bytes=ahead_bytes
        )
        self.file.save(self.begin)
        sink = self.stream.sink(aggregation)
        progress = ExtractionProgress(SILENT, sink.totals)
        delivery = Delivery(sink, self.file, progress, ahead_bytes)
        status = ExtractStatus(sink.totals)
        setbacks = Setbacks(Patience(0.01, 0.01, 3), Backoff((0.01,)), status, progress)
        return CyclicExtraction(extract, ChildSettings(()), delivery, status, setbacks, self.stop)


@pytest.fixture
def run(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Run:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("AHEAD", "yes")

    def said() -> list[str]:
        lines = (r.kainite_fields["line"] for r in caplog.records if r.getMessage() == "child stderr")  # type: ignore[attr-defined]
        return [line for line in lines if line.startswith("asked")]

    return Run(tmp_path, Stream(), said)


def whole(units: int) -> list[tuple[str, int]]:
    return sorted((f"T{number}", ordinal) for number in range(units) for ordinal in range(3))


async def test_answers_wait_for_a_slow_stream_up_to_the_bound_and_then_go_together(run: Run) -> None:
    extracting = asyncio.create_task(run.extraction(30, ahead_bytes=800).run(once=False))
    await until(lambda: len(run.said()) == 3 and run.stream.calls == 1)
    assert run.said() == ["asked from 0", "asked from 3, stored 0", "asked from 6, stored 0"]
    assert run.file.load() == Place(0)
    run.stream.open.set()
    await until(lambda: run.file.load() == Place(30))
    run.stop.set()
    await extracting
    assert run.stream.units() == whole(30)
    assert run.stream.calls < 10, "what waited was put together"


async def test_nothing_is_asked_for_ahead_before_there_is_a_place_to_name_as_stored(run: Run) -> None:
    run.begin = Place(None)
    extracting = asyncio.create_task(run.extraction(9).run(once=False))
    await until(lambda: run.stream.calls == 1)
    run.stream.open.set()
    await until(lambda: run.file.load() == Place(9))
    run.stop.set()
    await extracting
    assert run.said()[:2] == ["asked from None", "asked from 3"]
    assert not [line for line in run.said() if "stored None" in line]


async def test_without_room_for_answers_each_is_stored_before_the_next_is_asked_for(run: Run) -> None:
    run.stream.open.set()
    extracting = asyncio.create_task(run.extraction(9, ahead_bytes=0).run(once=False))
    await until(lambda: run.file.load() == Place(9))
    run.stop.set()
    await extracting
    assert run.said()[:3] == ["asked from 0", "asked from 3", "asked from 6"]
    assert run.stream.calls == 3


async def test_answers_linger_for_others_until_a_record_is_full_or_the_extraction_stops(run: Run) -> None:
    run.stream.open.set()
    extraction = run.extraction(30, aggregation=Aggregation(most_bytes=1024, linger=600.0))
    extracting = asyncio.create_task(extraction.run(once=False))
    await until(lambda: len(run.said()) == 11)
    await until(lambda: run.file.load().start >= 24)
    run.stop.set()
    await asyncio.wait_for(extracting, LIMIT)
    assert (run.stream.units(), run.file.load()) == (whole(30), Place(30))
    assert run.stream.calls <= 4
    assert len(run.stream.records) < 10


async def test_a_stop_delivers_what_waits(run: Run) -> None:
    extracting = asyncio.create_task(run.extraction(300, ahead_bytes=800).run(once=False))
    await until(lambda: len(run.said()) == 3 and run.stream.calls == 1)
    run.stop.set()
    run.stream.open.set()
    await extracting
    assert run.stream.units() == whole(run.file.load().start)
    assert run.file.load().start >= 9


async def test_an_extractor_that_dies_is_asked_again_when_what_it_gave_is_stored(run: Run) -> None:
    extraction = run.extraction(9, "die")
    extracting = asyncio.create_task(extraction.run(once=False))
    await until(lambda: (run.folder / "fault").exists() and run.stream.calls == 1)
    await until(lambda: extraction._delivery._awaited, LIMIT)  # noqa: SLF001 - until then it may be about to ask
    assert len(run.said()) == 2
    run.stream.open.set()
    await until(lambda: run.file.load() == Place(9))
    run.stop.set()
    await extracting
    assert run.said()[:3] == ["asked from 0", "asked from 3, stored 0", "asked from 3"]
    assert run.stream.units() == whole(9), "nothing comes twice"


async def test_a_stream_that_refuses_ends_it_at_once_and_nothing_is_stored(run: Run) -> None:
    run.stream.error = KeyError("broken")
    extracting = asyncio.create_task(run.extraction(300, "hang").run(once=False))
    await until(lambda: (run.folder / "fault").exists() and run.stream.calls == 1)
    run.stream.open.set()
    with pytest.raises(StreamError, match="PutRecords is refused"):
        await asyncio.wait_for(extracting, LIMIT)
    assert run.file.load() == Place(0)


class Source:
    """A source that forgets what it is told to, and a file that keeps the place."""

    def __init__(self) -> None:
        self.forgotten = 0
        self.stored = Place(0)
        self.stream = Stream()
        self.stream.open.set()

    def load(self) -> Place:
        return self.stored

    def save(self, place: Place) -> None:
        assert {f"{n}" for n in range(place.start)} <= {record.decode() for record in self.stream.records}
        assert place.start >= self.stored.start
        self.stored = place

    def asked(self, request: bytes) -> int:
        body = orjson.loads(request)
        self.forgotten = max(self.forgotten, body.get("stored", body["start"]))
        assert body["start"] >= self.forgotten, "it has forgotten this"
        assert self.forgotten <= self.stored.start
        return int(body["start"])


async def _life(source: Source, answers: Sequence[tuple[int, int]]) -> None:
    """Reads on from the stored place, and delivers meanwhile; then dies."""
    sink = source.stream.sink()
    delivery = Delivery(sink, cast(OffsetFile, source), ExtractionProgress(SILENT, sink.totals), ahead_bytes=4)
    delivering = asyncio.create_task(delivery.run())
    reading = asyncio.create_task(_read(source, delivery, answers))
    await asyncio.wait({reading, delivering}, return_when=asyncio.FIRST_COMPLETED)
    for task in (delivering, reading):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _read(source: Source, delivery: Delivery, answers: Sequence[tuple[int, int]]) -> None:
    """Reads answers of so many messages, each after so many turns of the loop."""
    place = delivery.stored
    for size, turns in answers:
        await delivery.room()
        cycle = Cycle(ExtractOffsets.KAINITE, place, datetime.now(UTC), 2**20, delivery.behind)
        step = cycle.step()
        assert isinstance(step, Ask)
        start = source.asked(step.request)
        cycle.done()
        for number in range(start, start + size):
            cycle.message(b"%d" % number)
        cycle.message(orjson.dumps({"offset": start + size, "ahead": True}))
        cycle.end()
        place = cycle.next_place
        delivery.hand_over(cycle)
        for _ in range(turns):
            await asyncio.sleep(0)


@settings(max_examples=25)
@given(st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), max_size=8), max_size=4))
def test_whenever_it_dies_the_source_still_has_what_is_not_on_the_stream(
    lives: list[list[tuple[int, int]]],
) -> None:
    source = Source()
    for life in lives:
        asyncio.run(_life(source, life))
