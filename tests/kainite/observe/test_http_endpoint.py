"""The endpoint, by clients that behave and clients that do not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from kainite.base.errors import SettingsError
from kainite.observe import http_endpoint
from kainite.observe.http_endpoint import HttpResponse, serving

LOCAL = "127.0.0.1"
LIMIT = 20.0


async def _page() -> HttpResponse:
    return HttpResponse(b"hello\n")


async def _broken() -> HttpResponse:
    raise ValueError("no such thing")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with serving({"/page": _page, "/broken": _broken}, LOCAL, 0) as port:
        yield port


async def ask(port: int, request: bytes) -> tuple[str, bytes]:
    """Sends bytes; returns the status line and all that follows the head."""
    async with asyncio.timeout(LIMIT):
        reader, writer = await asyncio.open_connection(LOCAL, port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.decode().split("\r\n")[0], body


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        ("GET /page HTTP/1.1", "200 OK", b"hello\n"),
        ("GET /page?x=1 HTTP/1.0", "200 OK", b"hello\n"),
        ("HEAD /page HTTP/1.1", "200 OK", b""),
        ("GET / HTTP/1.1", "404 Not Found", b"Not Found; there are /page /broken\n"),
        ("POST /page HTTP/1.1", "405 Method Not Allowed", b"Method Not Allowed\n"),
        ("GET /broken HTTP/1.1", "500 Internal Server Error", b"Internal Server Error\n"),
        ("GET /page", "400 Bad Request", b"Bad Request\n"),
        ("\x16\x03\x01 tls", "400 Bad Request", b"Bad Request\n"),
    ],
)
async def test_requests_get_their_answers(port: int, request_line: str, status: str, body: bytes) -> None:
    answered = await ask(port, f"{request_line}\r\nHost: x\r\n\r\n".encode())

    assert answered == (f"HTTP/1.1 {status}", body)


async def test_a_body_that_nobody_reads_does_not_cost_the_answer(port: int) -> None:
    status, _ = await ask(port, b"POST /page HTTP/1.1\r\nContent-Length: 50000\r\n\r\n" + b"x" * 50_000)

    assert status == "HTTP/1.1 405 Method Not Allowed"


async def test_a_head_without_end_is_refused(port: int) -> None:
    status, _ = await ask(port, b"GET /page HTTP/1.1\r\nX: " + b"x" * (2 * http_endpoint.MAX_HEAD))

    assert status == "HTTP/1.1 431 Request Header Fields Too Large"


async def ended(reader: asyncio.StreamReader) -> bool:
    """Tells whether the server ended a connection without an answer."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


async def test_a_client_that_says_nothing_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(LIMIT):
        with monkeypatch.context() as impatient:
            impatient.setattr(http_endpoint, "LIMIT_S", 0.01)
            reader, writer = await asyncio.open_connection(LOCAL, port)
            assert await ended(reader)
            writer.close()

    assert (await ask(port, b"GET /page HTTP/1.1\r\n\r\n"))[1] == b"hello\n"


async def test_a_client_beyond_the_bound_takes_the_place_of_the_oldest(port: int) -> None:
    async with asyncio.timeout(LIMIT):
        idle = [await asyncio.open_connection(LOCAL, port) for _ in range(http_endpoint.MAX_CONNECTIONS)]
        probe = await ask(port, b"GET /page HTTP/1.1\r\n\r\n")
        turned_away = await ended(idle[0][0])
        idle[1][1].write(b"GET /page HTTP/1.1\r\n\r\n")
        answer = await idle[1][0].read()
        for _, other in idle:
            other.close()

    assert probe == ("HTTP/1.1 200 OK", b"hello\n")
    assert turned_away
    assert answer.endswith(b"hello\n")


async def test_a_flood_of_silent_clients_starves_no_probe(port: int) -> None:
    async with asyncio.timeout(LIMIT):
        silent = []
        for _ in range(20):
            silent += [await asyncio.open_connection(LOCAL, port) for _ in range(10)]
            assert await ask(port, b"GET /page HTTP/1.1\r\n\r\n") == ("HTTP/1.1 200 OK", b"hello\n")
        for _, writer in silent:
            writer.close()


async def test_an_idle_client_does_not_hold_up_the_end() -> None:
    async with asyncio.timeout(LIMIT / 4):  # less than the client's own limit
        async with serving({"/page": _page}, LOCAL, 0) as port:
            _, writer = await asyncio.open_connection(LOCAL, port)
            await ask(port, b"GET /page HTTP/1.1\r\n\r\n")
        writer.close()


async def test_a_port_in_use_is_said_at_the_start() -> None:
    with socket.create_server((LOCAL, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"metricsPort: cannot listen on {LOCAL}:{port}"):
            async with serving({}, LOCAL, port):
                pass
