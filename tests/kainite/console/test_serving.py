"""Connections of the console: slow ones, silent ones, and too many."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from kainite.base.errors import SettingsError
from kainite.console.serving import MOST_CONNECTIONS, Connections, serve, serve_on
from kainite.settings import load

ASK = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def serving(clock: Callable[[], float] = time.monotonic) -> AsyncIterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as port:
        task = asyncio.create_task(serve_on(PlainTextResponse("well"), port, None, Connections(clock)))
        try:
            yield port.getsockname()[1]
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def answered(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASK)
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return answer


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"POST / HTTP/1.1\r\nContent-Le"])
async def test_who_says_nothing_or_says_it_slowly_is_cut_off(begun: bytes) -> None:
    async with serving(lambda: time.monotonic() * 100) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        assert b"well" in await answered(port)


async def test_a_thousand_connections_leave_room_for_a_person() -> None:
    async with serving() as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1_000)]
        assert b"well" in await answered(port)
        closed = [reader for reader, _ in idle[: -MOST_CONNECTIONS - 1]]
        for reader in closed:
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
        for _, writer in idle:
            writer.close()


async def test_headers_without_end_are_refused() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000)
        assert b" 400 " in await asyncio.wait_for(reader.readline(), 30)
        writer.close()


def test_a_port_that_is_taken_and_a_name_that_is_taken_are_one_line(tmp_path: Path, moto_endpoint: str) -> None:
    path = tmp_path / "app.properties"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        path.write_text(
            f"applicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
            f"consoleListen = 127.0.0.1:{taken.getsockname()[1]}\n"
        )
        each = load(path, needs=("applicationName",)), path
        with pytest.raises(SettingsError, match="consoleListen: cannot listen"):
            serve([each], print)
        with pytest.raises(SettingsError, match="same applicationName"):
            serve([each, each], print)
