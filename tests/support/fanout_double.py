"""SubscribeToShard over real HTTP/1.1 or HTTP/2 with event streams that do what a test wants: end, break off, refuse.

botocore can only decode event streams, so the encoder is here. Other operations are a ``KinesisDouble``'s.
"""

from __future__ import annotations

import json
import queue
import select
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from support.http2_double import Ending, Http2Answer, Http2Connection, Http2Request
from support.http_double import DoubleServer, JsonHandler
from support.kinesis_double import KinesisDouble


@dataclass
class Script:
    """The answer to one SubscribeToShard: refused with a code, or parts of a stream and how it ends.

    ``break``: without the end that HTTP asks for. ``hold``: it stays open until the client goes. ``reset`` and
    ``goaway`` are HTTP/2's.
    """

    parts: Iterable[bytes] = ()
    then: Ending = "end"
    refused: str | None = None
    status: int = 400


STALLED_AFTER_S = 0.5


class FanOutDouble:
    """With ``tls`` SubscribeToShard is served over HTTP/2, alone if ``only_http2``, and the rest over HTTP/1.1.

    ``stalled`` is set when the client's socket has taken nothing for :data:`STALLED_AFTER_S`, or its window
    is full, ``left`` when it went. ``sent`` counts the parts that its socket has taken.
    """

    def __init__(self, rest: KinesisDouble, tls: ssl.SSLContext | None = None, *, only_http2: bool = True) -> None:
        self.rest = rest
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        self.left = threading.Event()
        self.stalled = threading.Event()
        self._scripts: queue.SimpleQueue[Script] = queue.SimpleQueue()
        self.over_http2 = tls is not None
        self.only_http2 = self.over_http2 and only_http2
        self._server = DoubleServer(_handler(self), tls)
        self.endpoint = self._server.endpoint

    def close(self) -> None:
        self._server.close()

    def answer(self, *parts: bytes, then: Ending = "end") -> None:
        """Answers one more subscription like this; without any answers left, subscriptions are held, and silent."""
        self.follow(Script(parts, then))

    def follow(self, script: Script) -> None:
        """Answers one more subscription as a script says; its parts may come with time."""
        self._scripts.put(script)

    def refuse(self, code: str, times: int = 1, status: int = 400) -> None:
        for _ in range(times):
            self._scripts.put(Script(refused=code, status=status))

    def positions(self) -> list[tuple[str, str | None]]:
        """Returns where the subscriptions began: type and sequence number."""
        starts = [request["StartingPosition"] for request in self.asked]
        return [(start["Type"], start.get("SequenceNumber")) for start in starts]

    def respond(self, request: Http2Request) -> Http2Answer:
        """Returns the answer to a subscription over HTTP/2."""
        script = self.next_script()
        self.headers.append(request.headers)
        self.asked.append(json.loads(request.body))
        if script.refused:
            body = json.dumps({"__type": script.refused, "message": "refused"}).encode()
            return Http2Answer(script.status, (body,), headers={"content-type": "application/x-amz-json-1.1"})
        return Http2Answer(200, script.parts, script.then, {"content-type": "application/vnd.amazon.eventstream"})

    def part_sent(self) -> None:
        self.sent += 1

    def next_script(self) -> Script:
        return Script(then="hold") if self._scripts.empty() else self._scripts.get()


def shard_event(
    *sequences: int, data: str = "QQ==", behind: int = 0, children: tuple[str, ...] = (), parent: str = "",
    continuation: str | None = None,
) -> bytes:  # fmt: skip
    """Returns an event with a record for each sequence number; with children it is the last one."""
    records = [
        {"Data": data, "PartitionKey": "k", "SequenceNumber": str(n), "ApproximateArrivalTimestamp": 1.5}
        for n in sequences
    ]
    body: dict[str, Any] = {"Records": records, "MillisBehindLatest": behind}
    if children:
        keys = {"StartingHashKey": "0", "EndingHashKey": "1"}
        body["ChildShards"] = [
            {"ShardId": c, "ParentShards": [parent] if parent else [], "HashKeyRange": keys} for c in children
        ]
    else:
        body["ContinuationSequenceNumber"] = continuation or str(sequences[-1])
    return message({":message-type": "event", ":event-type": "SubscribeToShardEvent"}, body)


def initial_response() -> bytes:
    return message({":message-type": "event", ":event-type": "initial-response"}, {})


def exception(code: str) -> bytes:
    return message({":message-type": "exception", ":exception-type": code}, {"message": "as the test wants it"})


def message(headers: dict[str, str], body: dict[str, Any]) -> bytes:
    """Returns an ``application/vnd.amazon.eventstream`` message: prelude, headers (strings, type 7), payload, CRCs."""
    head = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    payload = json.dumps(body).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return checked + struct.pack(">I", zlib.crc32(checked))


def _handler(double: FanOutDouble) -> type[JsonHandler]:
    class Handler(JsonHandler):
        def handle(self) -> None:
            if not double.over_http2:
                super().handle()
                return
            try:
                self.connection.do_handshake()
                if self.connection.selected_alpn_protocol() == "h2":
                    Http2Connection(self.connection, double.respond, double.part_sent, double.stalled.set).serve()
                    double.left.set()
                else:
                    super().handle()
            except OSError:
                double.left.set()

        def serve(self, operation: str, request: dict[str, Any]) -> None:
            assert not double.only_http2 or operation != "SubscribeToShard"
            if operation != "SubscribeToShard":
                answer = double.rest.handle(operation, request)
                self.answer(answer.status, answer.body)
                return
            script = double.next_script()
            double.asked.append(request)
            if script.refused:
                self.answer(script.status, json.dumps({"__type": script.refused, "message": "refused"}).encode())
            else:
                self._stream(script)

        def _stream(self, script: Script) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.amazon.eventstream")
            self.send_header("Transfer-Encoding", "chunked")
            # Said, so that a client never asks again on a connection that is about to end; it also ends the handler.
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for part in script.parts:
                    self._push(b"%x\r\n%s\r\n" % (len(part), part))
                    double.sent += 1
                if script.then == "end":
                    self.wfile.write(b"0\r\n\r\n")
                elif script.then == "hold":
                    self.rfile.read(1)  # returns when the client has gone
                    double.left.set()
            except ConnectionError:
                double.left.set()

        def _push(self, data: bytes) -> None:
            if double.over_http2:  # TLS has no sending without waiting
                self.connection.sendall(data)
                return
            while data:
                if not select.select([], [self.connection], [], STALLED_AFTER_S)[1]:
                    double.stalled.set()
                    continue
                data = data[self.connection.send(data, socket.MSG_DONTWAIT) :]

    return Handler
