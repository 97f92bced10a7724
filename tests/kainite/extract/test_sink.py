"""Messages onto a stream that is split meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kainite.errors import StreamError
from kainite.extract.patience import Patience
from kainite.extract.sink import Sink
from kainite.kinesis.client import StreamClient
from kainite.kinesis.put import StreamWriter
from kainite.settings import ExtractSpread


@pytest.fixture
def sink(bench: Any) -> Callable[[str], Sink]:
    """A sink that lists the shards before each put."""

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
    with pytest.raises(StreamError, match="is not there"):
        await extracted.put([b"late"])
