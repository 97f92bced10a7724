"""The body of a reply over HTTP/2, as the library's thread fills it and a reader takes it."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from kainite.kinesis.read.http2_body import Http2Body


class Library:
    """The library's connection and stream, which note what is asked of them."""

    def __init__(self) -> None:
        self.opened: list[int] = []
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def update_window(self, size: int) -> None:
        self.opened.append(size)


def completed(error: Exception | None = None) -> Future[int]:
    future: Future[int] = Future()
    if error is None:
        future.set_result(200)
    else:
        future.set_exception(error)
    return future


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def body(library: Library) -> Http2Body:
    body = Http2Body(library, read_timeout=0.01)
    body.on_response(status_code=200, headers=[(":status", "200"), ("date", "now")])
    return body


def test_the_window_opens_by_what_is_taken_when_it_is_taken(library: Library, body: Http2Body) -> None:
    body.on_body(http_stream=library, chunk=b"abc")
    body.on_body(http_stream=library, chunk=b"de")
    body.on_end(completed())
    assert body.head() == (200, {"date": "now"})
    taking = body.stream()
    assert library.opened == []
    assert next(taking) == b"abc"
    assert library.opened == [3]
    assert next(taking) == b"de"
    assert library.opened == [3, 2]
    assert list(taking) == []
    assert list(body.stream()) == []
    body.close()
    assert library.closed


def test_what_came_before_a_broken_end_is_read(library: Library, body: Http2Body) -> None:
    body.on_body(http_stream=library, chunk=b"abc")
    body.on_end(completed(RuntimeError("reset")))
    taking = body.stream()
    assert next(taking) == b"abc"
    with pytest.raises(ConnectionError, match="broke off: reset"):
        next(taking)


def test_an_end_before_the_reply_is_the_replys_error(library: Library) -> None:
    body = Http2Body(library, read_timeout=5)
    body.on_end(completed(RuntimeError("goaway")))
    with pytest.raises(RuntimeError, match="goaway"):
        body.head()


def test_an_interrupted_body_stays_so_whatever_waits_in_it(library: Library, body: Http2Body) -> None:
    body.on_body(http_stream=library, chunk=b"abc")
    body.shutdown()
    for _ in range(2):
        with pytest.raises(ConnectionAbortedError):
            next(body.stream())
