"""Messages onto a stream that is split meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.errors import SourceError, StreamError
from kainite.extract.output.sink import Sink
from kainite.extract.patience import Patience
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.put import StreamWriter
from kainite.settings import ExtractSpread


@pytest.fixture
def sink(bench: Any) -> Callable[[str], Sink]:
    """Returns a sink that lists the shards before each put."""

    def make(stream: str) -> Sink:
        lister, writer = StreamClient(bench.lister, stream), StreamWriter(bench.kinesis, stream)
        return Sink(lister, writer, ExtractSpread.RECORD, refresh=0, patience=Patience(0.01, 0.01, 2))

    return make


def split_all(bench: Any) -> None:
    for shard in bench.kinesis.list_shards(StreamName=bench.stream)["Shards"]:
        ends = [int(shard["HashKeyRange"][name]) for name in ("StartingHashKey", "EndingHashKey")]
        bench.kinesis.split_shard(
            StreamName=bench.stream, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(sum(ends) // 2)
        )


async def test_after_a_split_there_are_more_shards_to_put_on(bench: Any, sink: Callable[[str], Sink]) -> None:
    extracted = sink(bench.stream)
    assert await extracted.open() == 3
    await extracted.put([b"before"] * 3)
    split_all(bench)
    assert await extracted.open() == 6
    await extracted.put([b"after"] * 6)
    assert sorted(bench.records()) == [b"after"] * 6 + [b"before"] * 3
    assert extracted.totals.records == 9


async def test_a_stream_that_vanishes_ends_it(bench: Any, sink: Callable[[str], Sink]) -> None:
    extracted = sink(bench.stream)
    await extracted.open()
    bench.kinesis.delete_stream(StreamName=bench.stream)
    with pytest.raises(StreamError, match="does not exist"):
        await extracted.put([b"late"])


def writer_to(server: socket.socket, limit: float) -> StreamWriter:
    """Returns a writer whose Kinesis is a socket."""
    endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    client = boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1", config=config)
    return StreamWriter(client, "s", limit=limit)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Returns a socket that is bound to a port and does not listen: connections are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


async def test_a_stream_that_takes_nothing_is_given_up_in_the_end(bench: Any, server: socket.socket) -> None:
    lister = StreamClient(bench.lister, bench.stream)
    patience = Patience(0.01, 0.01, 2)
    extracted = Sink(lister, writer_to(server, 0.1), ExtractSpread.UNIT, refresh=60, patience=patience)
    with pytest.raises(SourceError, match=r"given up after 2 failures in a row .* until the limit of 0\.1 s"):
        await extracted.put([b"message"])


async def test_a_put_that_is_cancelled_does_not_go_on_in_its_thread(bench: Any, server: socket.socket) -> None:
    server.listen()
    server.setblocking(False)
    lister = StreamClient(bench.lister, bench.stream)
    extracted = Sink(lister, writer_to(server, 600), ExtractSpread.UNIT, refresh=60, patience=Patience(0, 0, 9))
    putting = asyncio.create_task(extracted.put([b"message"]))
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30):
        connection, _ = await loop.sock_accept(server)
        connection.close()
        putting.cancel()
        await asyncio.wait({putting})
        server.close()
        await loop.shutdown_default_executor()
