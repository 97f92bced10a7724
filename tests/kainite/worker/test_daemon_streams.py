"""The streams of a daemon, as its file names them at each time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.read.shard_source import polling
from kainite.observe.meter import SILENT, Meter
from kainite.settings import Settings, load
from kainite.worker.daemon_streams import DaemonStreams, OpenStream
from kainite.worker.retrieval_mode import RENDER
from support.kinesis_double import KinesisDouble, stream_of


def named(folder: Path, names: str) -> Settings:
    path = folder / "app.properties"
    path.write_text(f"applicationName = app\nexecutableName = a b\nstreamNames = {names}\n")
    return load(path)


async def test_while_no_stream_is_open_the_retention_is_unknown_for_a_while(
    tmp_path: Path, double: KinesisDouble
) -> None:
    """Holds where every stream of the file was replaced, and the new ones are not open yet, or are misspelled."""
    with stream_of(double) as client:
        client.id = "1:orders:1"

        def open_one(settings: Settings, _: Meter) -> OpenStream:
            if settings.stream.name != "orders":
                raise StreamError("no such stream")
            return OpenStream(client, lambda protocol: polling(client, render=RENDER[protocol]), settings)

        streams = DaemonStreams(named(tmp_path, "orders"), SILENT, open_one)
        await streams.open(asyncio.Event())
        assert await asyncio.to_thread(streams.retention) > 0
        streams.apply(named(tmp_path, "ordres"))
        with pytest.raises(StreamUnavailableError, match="no stream is open"):
            streams.retention()
