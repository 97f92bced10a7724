"""Serves one connection over HTTP/2, with faults: resets, a GOAWAY, a connection that goes, a window that is full."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, Event, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

Ending = Literal["end", "break", "hold", "reset", "goaway"]


@dataclass
class Http2Answer:
    """An answer: status, parts of the body and how it ends; ``goaway`` says the connection's end, and holds on."""

    status: int
    parts: Iterable[bytes]
    then: Ending = "end"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Http2Request:
    """A request, as it came."""

    headers: dict[str, str]
    body: bytes = b""


class Http2Connection:
    """One connection: answers its first request and serves its windows until the client goes.

    Args:
        connection: the socket, on which HTTP/2 was agreed.
        respond: makes the answer to a request.
        sent: called when a part was sent whole.
        stalled: called when the client's window takes nothing more.
    """

    def __init__(
        self,
        connection: ssl.SSLSocket,
        respond: Callable[[Http2Request], Http2Answer],
        sent: Callable[[], None] = lambda: None,
        stalled: Callable[[], None] = lambda: None,
    ) -> None:
        self._socket = connection
        self._respond = respond
        self._sent = sent
        self._stalled = stalled
        self._h2 = H2Connection(H2Configuration(client_side=False))
        self._gone = False

    def serve(self) -> None:
        """Serves until the answer has ended and the client has gone."""
        self._h2.initiate_connection()
        self._flush()
        request, stream = Http2Request({}), 0
        for event in self._events():
            match event:
                case RequestReceived():
                    stream = event.stream_id or 0
                    request.headers = {name.decode(): value.decode() for name, value in event.headers or []}
                case DataReceived():
                    request.body += event.data or b""
                case StreamEnded():
                    self._answer(stream, self._respond(request))
                    if self._gone:
                        return

    def _events(self) -> Iterator[Event]:
        while not self._gone and (data := self._socket.recv(65_536)):
            try:
                events = self._h2.receive_data(data)
            except ProtocolError:
                return
            self._flush()
            for event in events:
                self._gone = self._gone or isinstance(event, ConnectionTerminated)
                yield event

    def _answer(self, stream: int, answer: Http2Answer) -> None:
        self._h2.send_headers(stream, [(":status", str(answer.status)), *answer.headers.items()])
        self._flush()
        for part in answer.parts:
            self._push(stream, part)
            self._sent()
        match answer.then:
            case "end":
                self._h2.end_stream(stream)
            case "reset":
                self._h2.reset_stream(stream, 2)
            case "goaway":
                self._h2.close_connection(0, last_stream_id=stream)
            case "break":
                self._gone = True
        self._flush()

    def _push(self, stream: int, data: bytes) -> None:
        while data:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size, len(data))
            if room > 0:
                self._h2.send_data(stream, data[:room])
                self._flush()
                data = data[room:]
            else:
                self._stalled()
                if next(self._events(), None) is None:
                    raise ConnectionError("the client has gone")

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())
