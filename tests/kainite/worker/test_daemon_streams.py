"""The streams of a daemon, from being named to being dropped: at its start, and where its file is read again."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.checkpoint import LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.errors import StoppedError, StreamError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.leases.streams import StreamsById
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import STREAMS_NOT_OPEN, Metric
from kainite.settings import ChildProtocol, Settings, load
from kainite.worker import daemon_streams
from kainite.worker.daemon_streams import DaemonStreams, OpenStream, open_stream
from support.kinesis_double import KinesisDouble
from support.names import unique
from support.sources import next_of
from support.waiting import LIMIT_S, until

SHARD = "shardId-000000000000"
DAY_S = 86_400.0


@dataclass
class Application:
    """Streams on a Kinesis, and settings of an application that reads some of them.

    Attributes:
        kinesis: a client.
        endpoint: of Kinesis.
        folder: for the settings.
    """

    kinesis: Any
    endpoint: str
    folder: Path

    def __post_init__(self) -> None:
        self.orders, self.payments = unique("orders"), f"{unique('pay')}.ments"

    def create(self, *names: str) -> None:
        for name in names:
            self.kinesis.create_stream(StreamName=name, ShardCount=1)

    def settings(self, *names: str, one: bool = False, more: Iterable[str] = ()) -> Settings:
        """Returns settings that name the streams, as ``streamNames`` or as one ``streamName``."""
        path = self.folder / "app.properties"
        lines = [
            "applicationName = app", "executableName = a", "workerId = w", "regionName = us-east-1",
            f"kinesisEndpoint = {self.endpoint}", "retrievalMode = POLLING",
            f"{'streamName' if one else 'streamNames'} = {', '.join(names)}", *more,
        ]  # fmt: skip
        path.write_text("\n".join(lines))
        return load(path)


@pytest.fixture
def app(kinesis: Any, moto_endpoint: str, tmp_path: Path) -> Application:
    return Application(kinesis, moto_endpoint, tmp_path)


async def opened(settings: Settings) -> DaemonStreams:
    streams = DaemonStreams(settings, SILENT)
    await streams.open(asyncio.Event())
    return streams


@asynccontextmanager
async def following(streams: DaemonStreams) -> AsyncIterator[list[str]]:
    """Opens missing streams meanwhile; gives the names of the open ones at each time when one was opened."""
    told: list[str] = []
    task = asyncio.create_task(streams.follow(lambda: told.append(streams.name)))
    try:
        yield told
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Told:
    """Takes how many streams are not open."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        if metric is STREAMS_NOT_OPEN:
            self.values.append(value)


def named(read: StreamsById) -> dict[str, str]:
    """Returns the ids of streams, by their names."""
    return {stream.client.name: id for id, stream in read.items()}


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record)["kainite_fields"] for record in caplog.records if record.getMessage() == message]


class TestAtTheStart:
    """The streams of the settings are opened, as far as Kinesis does not refuse them."""

    async def test_one_stream_has_no_id_and_its_own_identity(self, app: Application) -> None:
        app.create(app.orders)
        streams = await opened(app.settings(app.orders, one=True))

        assert named(streams.read(None)) == {app.orders: ""}
        assert streams.name == streams.of(SHARD).client.name == app.orders
        assert f":stream/{app.orders} made 20" in streams.identity()
        assert streams.retention() == DAY_S

    async def test_several_streams_are_told_apart_by_their_shards_keys(self, app: Application) -> None:
        app.create(app.orders, app.payments)
        app.kinesis.increase_stream_retention_period(StreamName=app.orders, RetentionPeriodHours=48)
        streams = await opened(app.settings(app.orders, app.payments))
        ids = named(streams.read(None))

        assert streams.name == f"{app.orders}, {app.payments}"
        assert [id.split(":")[1] for id in ids.values()] == [app.orders, app.payments]
        assert [streams.of(f"{id}:{SHARD}").client.name for id in ids.values()] == [app.orders, app.payments]
        assert streams.identity() == "several streams in us-east-1"
        assert streams.retention() == DAY_S, "the shortest of all"

    async def test_the_sources_of_a_stream_read_that_stream(self, app: Application) -> None:
        app.create(app.orders, app.payments)
        for name in (app.orders, app.payments):
            app.kinesis.put_record(StreamName=name, Data=b"put", PartitionKey=name)
        streams = await opened(app.settings(app.orders, app.payments))
        key = f"{named(streams.read(None))[app.payments]}:{SHARD}"
        stream = streams.of(key)
        source = stream.sources(ChildProtocol.JSON_LINES)(key, None, TRIM_HORIZON, stream.settings.stream, cut_at=None)
        batch = await next_of(source)
        await source.close()

        assert isinstance(batch, RecordBatch)
        assert app.payments.encode() in batch.line
        assert app.orders.encode() not in batch.line

    async def test_each_stream_has_its_own_settings_and_notes_its_own_beginning(self, app: Application) -> None:
        app.create(app.orders, app.payments)
        settings = app.settings(
            app.orders,
            app.payments,
            more=["unitsOfWork = true", "maxRecords = 7", f"stream.{app.payments}.maxRecords = 8"],
        )
        noted: list[tuple[str, Checkpoint, float | None]] = []

        async def begin(stream: StreamClient, initial: Checkpoint, time: float | None) -> float:
            noted.append((stream.name, initial, time))
            return 17.0

        read = (await opened(settings)).read(begin).values()

        assert [stream.settings.max_records for stream in read] == [7, 8]
        assert [await stream.begin(LATEST, None) for stream in read if stream.begin is not None] == [17.0, 17.0]
        assert noted == [(app.orders, LATEST, None), (app.payments, LATEST, None)]

    async def test_no_unit_waits_for_a_plain_stream(self, app: Application) -> None:
        app.create(app.orders)
        settings = app.settings(
            app.orders, app.payments, more=["unitsOfWork = true", f"stream.{app.payments}.unitsOfWork = false"]
        )

        async def begin(stream: StreamClient, initial: Checkpoint, time: float | None) -> float:
            return 17.0

        streams = await opened(settings)
        assert (streams.all_open(), streams.collected_are_open()) == (False, True)
        assert streams.collected == {app.orders}
        app.create(app.payments)
        read = (await opened(settings)).read(begin).values()
        assert [(stream.collected, stream.begin is not None) for stream in read] == [(True, True), (False, False)]

    async def test_a_stream_that_does_not_exist_ends_no_start_and_is_opened_when_it_is_there(
        self, app: Application, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(daemon_streams, "AGAIN_S", 0.01)
        app.create(app.payments)
        sink = Told()
        streams = DaemonStreams(app.settings(app.orders, app.payments), Meter(sink))
        await streams.open(asyncio.Event())

        assert (streams.name, streams.all_open()) == (app.payments, False)
        assert streams.identity() == "several streams in us-east-1"
        assert [told["stream"] for told in said(caplog, "stream not opened")] == [app.orders]
        assert app.orders in streams.refused[app.orders]
        async with following(streams) as told:
            await until(lambda: sink.values == [1.0] * len(sink.values) != [])
            app.create(app.orders)
            await until(lambda: told and sink.values[-1] == 0.0)
        assert (streams.all_open(), streams.refused) == (True, {})

    async def test_where_no_stream_exists_the_start_ends(self, app: Application) -> None:
        with pytest.raises(StreamError, match=app.orders):
            await opened(app.settings(app.orders, app.payments))

    async def test_it_waits_while_kinesis_is_away(
        self, app: Application, double: KinesisDouble, caplog: pytest.LogCaptureFixture
    ) -> None:
        double.fail("DescribeStreamSummary", "LimitExceededException")
        with caplog.at_level(logging.WARNING):
            streams = await opened(on_double(app, double))

        assert streams.name == "orders"
        assert [told["of"] for told in said(caplog, "waiting")] == ["stream orders"]

    async def test_a_stop_ends_the_wait_for_kinesis(self, app: Application, double: KinesisDouble) -> None:
        double.fail("DescribeStreamSummary", "LimitExceededException", times=1000)
        stop = asyncio.Event()
        opening = asyncio.create_task(DaemonStreams(on_double(app, double), SILENT).open(stop))
        await until(lambda: double.count("DescribeStreamSummary"))
        stop.set()
        with pytest.raises(StoppedError, match="stream orders"):
            await asyncio.wait_for(opening, LIMIT_S)


def on_double(app: Application, double: KinesisDouble) -> Settings:
    """Returns settings of a stream among several on the double, whose client does not try again by itself."""
    app.endpoint = double.endpoint
    settings = app.settings("orders")
    return replace(settings, aws=replace(settings.aws, tries=1))


class TestAnotherFile:
    """A running daemon drops streams at once, and opens new ones beside the work."""

    async def test_a_dropped_stream_is_read_no_more_and_stays_known_to_its_children(
        self, app: Application, caplog: pytest.LogCaptureFixture
    ) -> None:
        app.create(app.orders, app.payments)
        streams = await opened(app.settings(app.orders, app.payments))
        ids = named(streams.read(None))
        with caplog.at_level(logging.INFO):
            streams.apply(app.settings(app.payments))

        assert named(streams.read(None)) == {app.payments: ids[app.payments]}
        assert streams.of(f"{ids[app.orders]}:{SHARD}").client.name == app.orders
        assert [told["stream"] for told in said(caplog, "stream dropped")] == [app.orders]

    async def test_a_stream_that_stays_takes_its_new_settings(self, app: Application) -> None:
        app.create(app.orders, app.payments)
        streams = await opened(app.settings(app.orders, app.payments))
        before = {id: stream.client for id, stream in streams.read(None).items()}
        streams.apply(app.settings(app.payments, app.orders, more=[f"stream.{app.orders}.maxRecords = 9"]))
        read = streams.read(None)

        assert {id: stream.client for id, stream in read.items()} == before
        assert read[named(read)[app.orders]].settings.max_records == 9
        assert streams.of(f"{named(read)[app.orders]}:{SHARD}").settings.stream.max_records == 9

    async def test_a_new_stream_is_opened_beside_the_work(
        self, app: Application, caplog: pytest.LogCaptureFixture
    ) -> None:
        app.create(app.orders, app.payments)
        streams = await opened(app.settings(app.orders))
        with caplog.at_level(logging.INFO):
            async with following(streams) as told:
                streams.apply(app.settings(app.orders, app.payments))
                await until(lambda: told)
        ids = named(streams.read(None))

        assert told == [f"{app.orders}, {app.payments}"]
        assert said(caplog, "stream opened") == [{"stream": app.payments, "id": ids[app.payments]}]
        assert streams.of(f"{ids[app.payments]}:{SHARD}").client.name == app.payments

    async def test_a_dropped_stream_that_is_named_again_is_opened_again(self, app: Application) -> None:
        app.create(app.orders, app.payments)
        both = app.settings(app.orders, app.payments)
        streams = await opened(both)
        ids = named(streams.read(None))
        async with following(streams) as told:
            streams.apply(app.settings(app.orders))
            streams.apply(both)
            await until(lambda: told)

        assert named(streams.read(None)) == ids

    async def test_one_that_cannot_be_opened_holds_up_no_other_and_is_tried_again(
        self, app: Application, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(daemon_streams, "AGAIN_S", 0.01)
        late = unique("late")
        app.create(app.orders, app.payments)
        streams = await opened(app.settings(app.orders))
        async with following(streams) as told:
            streams.apply(app.settings(app.orders, late, app.payments))
            await until(lambda: len(said(caplog, "stream not opened")) > 1)
            assert (told, streams.all_open()) == ([f"{app.orders}, {app.payments}"], False)
            assert streams.refused.keys() == {late}
            app.create(late)
            await until(lambda: len(told) > 1)
            assert (streams.all_open(), streams.refused) == (True, {})

        assert {failed["stream"] for failed in said(caplog, "stream not opened")} == {late}
        assert {streams.spelling(id) for id in streams.read(None)} == {app.orders, app.payments, late}
        assert streams.spelling("another") == "another"
        assert named(streams.read(None)).keys() == {app.orders, app.payments, late}

    async def test_one_that_cannot_be_opened_is_tried_no_more_when_it_is_dropped(
        self, app: Application, caplog: pytest.LogCaptureFixture
    ) -> None:
        app.create(app.orders, app.payments)
        one, both = app.settings(app.orders), app.settings(app.orders, app.payments)
        streams = await opened(one)
        async with following(streams) as told:
            streams.apply(app.settings(app.orders, unique("never")))
            await until(lambda: said(caplog, "stream not opened"))
            assert len(streams.refused) == 1
            streams.apply(both)
            assert streams.refused == {}
            await until(lambda: told)
            caplog.clear()
            streams.apply(one)
            streams.apply(both)
            await until(lambda: len(told) > 1)

        assert said(caplog, "stream not opened") == []

    async def test_while_no_stream_is_open_the_retention_is_to_be_asked_again(self, app: Application) -> None:
        app.create(app.orders, app.payments)
        streams = await opened(app.settings(app.orders))
        streams.apply(app.settings(app.payments))
        with pytest.raises(StreamUnavailableError, match="no stream is open"):
            streams.retention()
        async with following(streams) as told:
            await until(lambda: told)

        assert streams.retention() == DAY_S


class Held:
    """Opens streams; those that are opened while ``gate`` is closed are held up."""

    def __init__(self) -> None:
        self.gate, self.reached = threading.Event(), threading.Event()
        self.gate.set()

    def __call__(self, settings: Settings, meter: Meter) -> OpenStream:
        stream = open_stream(settings, meter)
        self.reached.set()
        assert self.gate.wait(LIMIT_S)
        return stream


class TestAFileThatChangesWhileAStreamIsOpened:
    """What counts is what the settings say when it is open."""

    @pytest.fixture
    def held(self) -> Held:
        return Held()

    @asynccontextmanager
    async def opening(self, app: Application, held: Held) -> AsyncIterator[tuple[DaemonStreams, list[str]]]:
        """Gives a daemon of one stream that is opening another one, and is held up there."""
        app.create(app.orders, app.payments)
        streams = DaemonStreams(app.settings(app.orders), SILENT, held)
        await streams.open(asyncio.Event())
        held.gate.clear()
        held.reached.clear()
        try:
            async with following(streams) as told:
                streams.apply(app.settings(app.orders, app.payments))
                await until(held.reached.is_set)
                yield streams, told
        finally:
            held.gate.set()

    async def test_its_settings_are_the_later_ones(self, app: Application, held: Held) -> None:
        async with self.opening(app, held) as (streams, told):
            streams.apply(app.settings(app.orders, app.payments, more=[f"stream.{app.payments}.maxRecords = 9"]))
            held.gate.set()
            await until(lambda: told)

        by_name = {stream.client.name: stream for stream in streams.read(None).values()}
        assert by_name[app.payments].settings.max_records == 9
        assert by_name[app.orders].settings.max_records != 9

    async def test_a_stream_that_was_dropped_meanwhile_is_not_read(self, app: Application, held: Held) -> None:
        third = unique("third")
        app.create(third)
        async with self.opening(app, held) as (streams, told):
            streams.apply(app.settings(app.orders, third))
            held.gate.set()
            await until(lambda: told)

        assert told == [f"{app.orders}, {third}"]
        assert named(streams.read(None)).keys() == {app.orders, third}
