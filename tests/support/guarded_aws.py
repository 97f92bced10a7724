"""moto's services behind a door: each request is allowed by the policies of its access key, or denied.

What real processes call is recorded where it arrives, whatever made the call. An access key without policies may do
all: it is the test's own.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from support.aws_calls import requests
from support.policy_simulator import AwsRequest, allows

_SERVICES = {"DynamoDB": "dynamodb", "Kinesis": "kinesis", "GraniteServiceVersion": "cloudwatch"}
_CREDENTIAL = re.compile(r"Credential=([^/]+)/")
_DENIED = {"__type": "com.amazon.coral.service#AccessDeniedException"}


WsgiApplication = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""


@dataclass
class GuardedAws:
    """The door.

    Attributes:
        policies: by access key.
        stream: the stream of calls that name none.
        calls: what was asked for, by access key.
        refused: what of it was denied.
        endpoint: where it is reached.
        inner: moto's services.
    """

    stream: str
    policies: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    calls: dict[str, set[AwsRequest]] = field(default_factory=dict)
    refused: dict[str, set[AwsRequest]] = field(default_factory=dict)
    endpoint: str = ""
    inner: WsgiApplication = field(default_factory=lambda: DomainDispatcherApplication(create_backend_app))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        found = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
        key = found[1] if found else ""
        if key not in self.policies:
            return self.inner(environ, start_response)
        asked = self._asked(environ, body)
        refused = {each for each in asked if not allows(self.policies[key], each)}
        self.calls.setdefault(key, set()).update(asked)
        self.refused.setdefault(key, set()).update(refused)
        if not refused:
            return self.inner(environ, start_response)
        headers = [("Content-Type", "application/x-amz-json-1.0"), ("x-amzn-RequestId", "denied")]
        start_response("400 Bad Request", headers)
        return [json.dumps({**_DENIED, "Message": f"User: {key} is not authorized: {refused}"}).encode()]

    def _asked(self, environ: Mapping[str, Any], body: bytes) -> list[AwsRequest]:
        target = re.fullmatch(r"([A-Za-z]+)_?\d+\.(\w+)", environ.get("HTTP_X_AMZ_TARGET", ""))
        assert target is not None, f"a request that is not understood: {environ['PATH_INFO']}"
        service, operation = _SERVICES[target[1]], target[2]
        parameters = json.loads(body)
        if service == "kinesis":
            parameters.setdefault("StreamName", self.stream)
        return list(requests(service, operation, parameters))


@contextmanager
def guarded(stream: str) -> Iterator[GuardedAws]:
    """Opens the door on a port of its own; the services behind it are those of ``moto_endpoint``."""
    door = GuardedAws(stream)
    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=MotoRequestHandler)
    door.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield door
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
