"""A proxy before DynamoDB that counts requests and capacity units: answers tell what the requests consumed."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})
_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})


@dataclass
class Counts:
    """Requests by operation, and the capacity units that they consumed."""

    requests: Counter[str] = field(default_factory=Counter)
    read_units: float = 0.0
    write_units: float = 0.0


class CountingProxy:
    """Serves on the loopback until :meth:`close`.

    Args:
        inner: DynamoDB's address.
    """

    def __init__(self, inner: str) -> None:
        self._lock = threading.Lock()
        self._counts = Counts()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, urlsplit(inner).netloc))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self) -> Counts:
        """Returns what was counted since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counts()
            return counts

    def count(self, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        consumed = answer.get("ConsumedCapacity") or []
        units = sum(one.get("CapacityUnits", 0.0) for one in (consumed if isinstance(consumed, list) else [consumed]))
        with self._lock:
            self._counts.requests[operation] += 1
            if operation in _WRITES:
                self._counts.write_units += units or 1.0  # a refused condition costs a unit, too
            elif operation in _READS:
                # AWS bills a read that finds nothing, which DynamoDB Local does not count.
                self._counts.read_units += units or (1.0 if request.get("ConsistentRead") else 0.5)


def _handler(proxy: CountingProxy, inner: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(body)
            if operation in _READS | _WRITES:
                body = json.dumps({**request, "ReturnConsumedCapacity": "TOTAL"}).encode()
            connection = http.client.HTTPConnection(inner, timeout=60)
            left_out = ("host", "content-length", "accept-encoding")
            headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            proxy.count(operation, request, json.loads(content) if content else {})
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
