"""A small HTTP server for the daemon's own pages: one GET or HEAD a connection, everything bounded.

Each connection has :data:`LIMIT_S` to send its request and take the answer, :data:`MAX_HEAD` bytes for the request,
and there are at most :data:`MAX_CONNECTIONS` connections: one more cuts the oldest one off. A probe sends its request
at once and has its answer within milliseconds, so clients that say nothing cut off one another and not the probe.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from kainite.base.end_listening import end_listening
from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.base.time_limit import time_limit

logger = logging.getLogger(__name__)

LIMIT_S = 10.0
MAX_HEAD = 16 * 1024
MAX_CONNECTIONS = 32
_PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    body: bytes
    content_type: str = _PLAIN
    status: HTTPStatus = HTTPStatus.OK


Page = Callable[[], Awaitable[HttpResponse]]


@asynccontextmanager
async def serving(pages: Mapping[str, Page], host: str, port: int) -> AsyncIterator[int]:
    """Serves until the end; yields the port.

    Args:
        pages: for each path, such as ``/health``, the function that makes the answer.
        host, port: the address to listen at; port 0 takes any port that is free.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    endpoint = _Endpoint(pages)
    try:
        server = await asyncio.start_server(endpoint.connected, host, port, limit=MAX_HEAD)
    except OSError as error:
        raise SettingsError(
            f"metricsPort: cannot listen on {host}:{port}: {error.strerror or error}; choose another port or host"
        ) from error
    found: int = server.sockets[0].getsockname()[1]
    event(logger, logging.INFO, "endpoint ready", host=host, port=found, pages=" ".join(pages))
    try:
        yield found
    finally:
        try:
            await end_listening(server)
        finally:
            await endpoint.close()


class _Endpoint:
    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}  # the oldest one first

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            oldest = next(iter(self._connections))
            self._connections.pop(oldest).transport.abort()
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer), name="endpoint connection")
        self._connections[task] = writer
        task.add_done_callback(lambda done: self._connections.pop(done, None))

    async def close(self) -> None:
        """Ends all connections."""
        connections = dict(self._connections)
        for task, writer in connections.items():
            task.cancel()
            writer.transport.abort()  # a task that is cancelled before it begins aborts nothing
        if connections:
            await asyncio.wait(connections)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
                async with time_limit(LIMIT_S):
                    await self._serve_one(reader, writer)
        finally:
            writer.transport.abort()  # the answer was drained, or the client's time is over

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            method, answer = "GET", _error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            method, answer = await self._answer(head)
        writer.write(_message(answer, with_body=method != "HEAD"))
        writer.write_eof()
        while await reader.read(
            MAX_HEAD
        ):  # until the client has closed: an abort before that may cost the client the answer
            pass

    async def _answer(self, head: bytes) -> tuple[str, HttpResponse]:
        parts = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            return "GET", _error(HTTPStatus.BAD_REQUEST)
        method, path = parts[0], parts[1].partition("?")[0]
        page = self._pages.get(path)
        if page is None:
            return method, _error(HTTPStatus.NOT_FOUND, f"; there are {' '.join(self._pages)}")
        if method not in ("GET", "HEAD"):
            return method, _error(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return method, await page()
        except Exception:
            logger.exception("page failed: %s", path)
            return method, _error(HTTPStatus.INTERNAL_SERVER_ERROR)


def _error(status: HTTPStatus, more: str = "") -> HttpResponse:
    return HttpResponse(f"{status.phrase}{more}\n".encode(), status=status)


def _message(answer: HttpResponse, *, with_body: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join([*lines, "", ""]).encode()
    return head + answer.body if with_body else head
