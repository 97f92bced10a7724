"""The body of a reply over HTTP/2, with back-pressure: the server may send what the reader has taken, and no more.

The stream's window is the bound. It opens by what is taken, when it is taken; while nobody takes anything, the server
stops after :data:`WINDOW` bytes, which wait here. The library's thread puts chunks and the stream's end into a queue;
one reader takes them; any thread may interrupt the reader.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Protocol

WINDOW: Final = 2**20
"""Bytes that a server may send ahead of the reader: half a second of a shard's 2 MB/s."""


class CrtConnection(Protocol):
    """The methods used of awscrt's connection."""

    def close(self) -> object: ...


class Http2Body:
    """One reply: its head, then its chunks.

    Args:
        connection: the connection, which has no other stream; closed with the body.
        read_timeout: seconds to wait for the head, and for each chunk.
    """

    def __init__(self, connection: CrtConnection, read_timeout: float) -> None:
        self._connection = connection
        self._read_timeout = read_timeout
        self._head: Future[tuple[int, dict[str, str]]] = Future()
        self._chunks: queue.SimpleQueue[bytes | BaseException | None] = queue.SimpleQueue()
        self._interrupted = False
        self._ended = False

    # Called by the library's thread.

    def on_response(self, *, status_code: int, headers: Sequence[tuple[str, str]], **_: object) -> None:
        """Takes the reply's head."""
        self._head.set_result((status_code, {name: value for name, value in headers if not name.startswith(":")}))

    def on_body(self, *, http_stream: Any, chunk: bytes, **_: object) -> None:
        """Takes a chunk."""
        self._stream = http_stream
        self._chunks.put(bytes(chunk))

    def on_end(self, completed: Future[int]) -> None:
        """Takes the stream's end: whole, reset by the server, or with its connection."""
        error = completed.exception()
        if not self._head.done():
            self._head.set_exception(error or ConnectionError("the stream ended without a reply"))
        self._chunks.put(error)

    # Called by the reader.

    def head(self) -> tuple[int, dict[str, str]]:
        """Returns status and headers.

        Raises:
            TimeoutError: they did not come in time.
            Exception: the stream or its connection ended before.
        """
        return self._head.result(self._read_timeout)

    def stream(self) -> Iterator[bytes]:
        """Yields the chunks to the end.

        Raises:
            OSError: the stream broke off, was silent for the read timeout, or was interrupted.
        """
        while not self._ended:
            chunk = self._next()
            if chunk is None:
                return
            with suppress(Exception):  # the stream has ended by now, and has no window any more
                self._stream.update_window(len(chunk))
            yield chunk

    def shutdown(self) -> None:
        """Makes :meth:`stream` fail, now and later, also in a thread that waits there."""
        self._interrupted = True
        self._chunks.put(None)

    def close(self) -> None:
        """Closes the connection, which ends the stream at the server."""
        self._connection.close()

    def _next(self) -> bytes | None:
        """Returns the next chunk; None at the end."""
        try:
            chunk = None if self._interrupted else self._chunks.get(timeout=self._read_timeout)
        except queue.Empty:
            raise TimeoutError(f"nothing came over HTTP/2 for {self._read_timeout:g} s") from None
        if self._interrupted:
            raise ConnectionAbortedError("the reading was interrupted")
        if isinstance(chunk, bytes):
            return chunk
        self._ended = True
        if chunk is not None:
            raise ConnectionError(f"the stream over HTTP/2 broke off: {chunk}") from chunk
        return None
