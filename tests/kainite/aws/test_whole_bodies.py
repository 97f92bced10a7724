"""Bodies that are read in one piece: what arrives, and what happens where the reply breaks off."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError, ReadTimeoutError

from kainite.aws.clients import client
from kainite.kinesis.client import StreamClient
from kainite.settings import AwsSettings
from support.http_double import DoubleServer, JsonHandler

BODY = json.dumps({"Records": [], "NextShardIterator": "i" * 300_000}).encode()


class Replies(JsonHandler):
    """Answers each request in the next of the ways in ``ways``, and the last way again and again."""

    ways: ClassVar[list[str]] = []
    asked: ClassVar[int] = 0
    released: ClassVar[threading.Event]

    def serve(self, operation: str, request: dict[str, Any]) -> None:
        way = self.ways[min(Replies.asked, len(self.ways) - 1)]
        Replies.asked += 1
        self.send_response(500 if way == "failure" else 200)
        self.send_header("x-amzn-requestid", "r")
        if way == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for begin in range(0, len(BODY), 70_000):
                piece = BODY[begin : begin + 70_000]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY if way in ("whole", "failure") else BODY[:100_000])
        if way == "silent":
            self.wfile.flush()
            self.released.wait()
        self.close_connection = way in ("cut", "silent")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[DoubleServer]:
    Replies.asked, Replies.released = 0, threading.Event()
    server = DoubleServer(Replies)
    yield server
    Replies.released.set()
    server.close()


def read(server: DoubleServer, *ways: str, tries: int = 2) -> bytes:
    """Reads once; the server answers in ``ways``."""
    Replies.ways = list(ways)
    # A busy machine answers late: only where a reply falls silent may the wait for it end soon.
    timeout = 1 if "silent" in ways else 60
    settings = AwsSettings("us-east-1", kinesis_endpoint=server.endpoint, tries=tries, read_timeout=timeout)
    kinesis = client("kinesis", settings)
    try:
        return StreamClient(kinesis, "s").get_records("i", 10)
    finally:
        kinesis.close()


@pytest.mark.parametrize("way", ["whole", "chunked"])
def test_a_body_arrives_whole(server: DoubleServer, way: str) -> None:
    assert read(server, way) == BODY
    assert Replies.asked == 1


@pytest.mark.parametrize("way", ["cut", "silent", "failure"])
def test_botocore_asks_again_for_a_reply_that_broke_off(server: DoubleServer, way: str) -> None:
    assert read(server, way, "whole", tries=5) == BODY
    assert Replies.asked >= 2


@pytest.mark.parametrize(
    ("way", "error"), [("cut", ConnectionClosedError), ("silent", ReadTimeoutError), ("failure", ClientError)]
)
@pytest.mark.parametrize("tries", [1, 2])
def test_the_last_try_raises_botocores_own_error(
    server: DoubleServer, way: str, error: type[Exception], tries: int
) -> None:
    with pytest.raises(error) as raised:
        read(server, way, tries=tries)
    assert isinstance(raised.value, HTTPClientError) == (error is not ClientError)
    assert Replies.asked == tries
