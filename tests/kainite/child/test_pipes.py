from __future__ import annotations

import asyncio
import os
from typing import IO

import pytest

from kainite.child.pipes import PIPE_SIZE, PipeReader, PipeWriter, enlarge

LIMIT = 20.0


@pytest.fixture
def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


class Received:
    """The chunks that a reader hands on."""

    def __init__(self) -> None:
        self.data = b""
        self.news = asyncio.Event()
        self.ended = asyncio.Event()

    def take(self, data: bytes) -> None:
        self.data += data
        self.news.set()

    async def size(self, size: int) -> None:
        async with asyncio.timeout(LIMIT):
            while len(self.data) < size:
                self.news.clear()
                await self.news.wait()


async def test_more_than_a_pipe_holds_arrives_whole_and_in_order(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    received = Received()
    writer = PipeWriter(pipe[1], lambda: pytest.fail("the pipe broke"))
    expected = b"".join(bytes([number]) * PIPE_SIZE for number in range(3))
    for number in range(3):
        writer.write(bytes([number]) * PIPE_SIZE)
    PipeReader(pipe[0], received.take, received.ended.set)
    await received.size(len(expected))
    assert received.data == expected
    writer.close()
    await asyncio.wait_for(received.ended.wait(), LIMIT)


@pytest.mark.parametrize("size", [1, 1000, PIPE_SIZE // 3])
async def test_pieces_arrive_in_order_however_the_pipe_cuts_them(pipe: tuple[IO[bytes], IO[bytes]], size: int) -> None:
    received = Received()
    writer = PipeWriter(pipe[1], lambda: pytest.fail("the pipe broke"))
    pieces = [bytes([number % 251]) * (size + number % 7) for number in range(3 * PIPE_SIZE // size % 5000 + 9)]
    writer.write(b"", *pieces, b"")
    writer.write(b"end")
    PipeReader(pipe[0], received.take, received.ended.set)
    expected = b"".join(pieces) + b"end"
    await received.size(len(expected))
    assert received.data == expected
    writer.close()


async def test_a_reader_that_left_is_noticed_only_when_something_is_left_to_write(
    pipe: tuple[IO[bytes], IO[bytes]],
) -> None:
    broken: list[str] = []
    writer = PipeWriter(pipe[1], lambda: broken.append("broken"))
    writer.write(b"last")
    pipe[0].close()
    assert not broken
    writer.write(b"more")
    assert broken == ["broken"]
    writer.write(b"after the end")
    writer.close()
    assert broken == ["broken"]


async def test_a_paused_reader_leaves_the_data_in_the_pipe(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    received = Received()
    reader = PipeReader(pipe[0], received.take, received.ended.set)
    reader.pause()
    pipe[1].write(b"data")
    await asyncio.sleep(0)  # the loop looks at its descriptors
    assert received.data == b""
    reader.resume()
    await received.size(4)
    reader.close()
    reader.resume()
    pipe[1].close()


async def test_drain_reads_at_once_what_the_pipe_holds_and_sees_its_end(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    received = Received()
    enlarge(pipe[1])
    reader = PipeReader(pipe[0], received.take, received.ended.set)
    with pipe[1] as writing:
        writing.write(b"x" * 300_000)
    reader.drain()
    assert len(received.data) == 300_000
    assert received.ended.is_set()
    reader.drain()
