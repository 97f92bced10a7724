"""Calls by the pattern of an earlier one: what is sent, and that botocore decides about every failure."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError
from botocore.session import Session

from kainite.aws.clients import client
from kainite.aws.foreign_replies import ForeignReplyError
from kainite.aws.repeated_calls import RepeatedCalls
from kainite.kinesis.client import StreamClient
from kainite.settings import AwsSettings
from support.http_double import DoubleServer, JsonHandler

THROTTLED = b'{"__type":"ProvisionedThroughputExceededException","message":"slow down"}'


class Kinesis(JsonHandler):
    """Answers GetRecords with the iterator it was asked for, or in the next of ``ways``; keeps what was asked."""

    ways: ClassVar[list[str]] = []
    asked: ClassVar[list[tuple[Message, dict[str, Any]]]] = []
    lock: ClassVar[threading.Lock] = threading.Lock()

    def serve(self, operation: str, request: dict[str, Any]) -> None:
        with self.lock:
            self.asked.append((self.headers, request))
            way = self.ways.pop(0) if self.ways else "well"
        if way == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"{")
            self.close_connection = True
        elif way == "page":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"<html>")
        else:
            status = {"failure": 500, "throttled": 400}.get(way, 200)
            self.answer(status, THROTTLED if way == "throttled" else _answer(request["ShardIterator"]))


@pytest.fixture
def server() -> Iterator[DoubleServer]:
    Kinesis.ways, Kinesis.asked = [], []
    server = DoubleServer(Kinesis)
    yield server
    server.close()


@pytest.fixture
def stream(server: DoubleServer) -> Iterator[StreamClient]:
    with _stream(server, tries=2) as stream:
        yield stream


def _stream(server: DoubleServer, tries: int) -> _Closing:
    return _Closing(client("kinesis", AwsSettings("us-east-1", kinesis_endpoint=server.endpoint, tries=tries)))


class _Closing:
    """A stream whose client is closed in the end."""

    def __init__(self, kinesis: Any) -> None:
        self._kinesis = kinesis

    def __enter__(self) -> StreamClient:
        return StreamClient(self._kinesis, "s")

    def __exit__(self, *_: object) -> None:
        self._kinesis.close()


def _answer(iterator: str) -> bytes:
    return json.dumps({"Records": [], "NextShardIterator": f"after {iterator}"}).encode()


def _named(headers: Message, but: set[str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() not in but}


def by_botocore() -> list[bool]:
    """Returns which requests botocore has made: it numbers them."""
    return ["amz-sdk-invocation-id" in headers for headers, _ in Kinesis.asked]


def test_botocore_makes_the_first_call_only(stream: StreamClient) -> None:
    assert [stream.get_records(f"i{n}", 10) for n in range(4)] == [_answer(f"i{n}") for n in range(4)]
    assert by_botocore() == [True, False, False, False]


def test_a_repeated_request_says_what_botocore_says(stream: StreamClient) -> None:
    for iterator in ("a", "b"):
        stream.get_records(iterator, 10)
    (first, asked), (second, asked_then) = Kinesis.asked
    of_retries = {"amz-sdk-invocation-id", "amz-sdk-request"}
    differing = {"x-amz-date", "authorization", "content-length", *of_retries}
    assert _named(second, differing) == _named(first, differing)
    assert {name.lower() for name in second} == {name.lower() for name in first} - of_retries
    assert asked_then == asked | {"ShardIterator": "b"}


def test_a_repeated_request_is_signed(server: DoubleServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ACCESS_KEY_ID", "AKID"), ("SECRET_ACCESS_KEY", "secret"), ("SESSION_TOKEN", "token")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with _stream(server, tries=1) as stream:
        for iterator in ("a", "b"):
            stream.get_records(iterator, 10)
    headers, asked = Kinesis.asked[-1]
    authorization = headers["Authorization"]
    signed = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token", "x-amz-target"} <= set(signed)
    body = json.dumps(asked).encode()
    request = AWSRequest("POST", f"{server.endpoint}/", {name: headers[name] for name in signed}, body)
    request.context["timestamp"] = headers["X-Amz-Date"]
    signer = SigV4Auth(Credentials("AKID", "secret", "token").get_frozen_credentials(), "kinesis", "us-east-1")
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    assert authorization.endswith(f"Signature={signature}")


@pytest.mark.parametrize("way", ["cut", "failure", "throttled"])
def test_botocore_asks_again_as_if_the_failed_request_had_been_its_own(server: DoubleServer, way: str) -> None:
    with _stream(server, tries=2) as stream:
        stream.get_records("a", 10)
        Kinesis.ways = [way]
        assert stream.get_records("b", 10) == _answer("b")
    assert by_botocore() == [True, False, True]
    assert Kinesis.asked[-1][0]["amz-sdk-request"].endswith("attempt=2; max=2")


@pytest.mark.parametrize(
    ("way", "error"),
    [
        ("cut", ConnectionClosedError),
        ("failure", ClientError),
        ("throttled", ClientError),
        ("page", ForeignReplyError),
    ],
)
def test_the_last_try_raises_botocores_own_error(server: DoubleServer, way: str, error: type[Exception]) -> None:
    with _stream(server, tries=1) as stream:
        stream.get_records("a", 10)
        Kinesis.ways = [way]
        with pytest.raises(error) as raised:
            stream.get_records("b", 10)
    assert isinstance(raised.value, HTTPClientError) == (error is not ClientError)
    assert by_botocore() == [True, False]


@pytest.mark.parametrize(("rest", "then"), [(60.0, [True, True]), (0.0, [False, False])])
def test_botocore_makes_all_calls_for_a_while_after_a_failure(
    server: DoubleServer, rest: float, then: list[bool]
) -> None:
    kinesis = client("kinesis", AwsSettings("us-east-1", kinesis_endpoint=server.endpoint, tries=2))
    sent: list[bytes] = []
    kinesis.meta.events.register("before-parse.kinesis.GetRecords", lambda response_dict, **_: sent.append(
        response_dict["body"]))  # fmt: skip

    def by_kinesis(parameters: Any) -> bytes:
        kinesis.get_records(**parameters)
        return sent[-1]

    calls = RepeatedCalls(kinesis, "GetRecords", by_kinesis, rest)
    calls.body({"ShardIterator": "a"})
    Kinesis.ways = ["failure"]
    assert [calls.body({"ShardIterator": name}) for name in ("b", "c", "d")] == [_answer(name) for name in "bcd"]
    kinesis.close()
    assert by_botocore() == [True, False, True, *then]


def test_credentials_are_renewed(server: DoubleServer) -> None:
    keys = iter(f"AKID{number}" for number in range(10))

    def renewed() -> dict[str, str]:
        soon = datetime.now(UTC) + timedelta(minutes=5)  # so soon that each use renews them
        return {"access_key": next(keys), "secret_key": "s", "token": "t", "expiry_time": soon.isoformat()}

    session = Session()
    made = RefreshableCredentials.create_from_metadata(renewed(), renewed, "test")
    session.register_component("credential_provider", SimpleNamespace(load_credentials=lambda: made))
    kinesis: Any = session.create_client("kinesis", region_name="us-east-1", endpoint_url=server.endpoint)
    stream = StreamClient(kinesis, "s")
    for iterator in ("a", "b", "c"):
        stream.get_records(iterator, 10)
    kinesis.close()
    used = [headers["Authorization"].partition("=")[2].partition("/")[0] for headers, _ in Kinesis.asked]
    assert len(set(used)) == 3
    assert by_botocore() == [True, False, False]


def test_threads_get_their_own_replies(server: DoubleServer) -> None:
    Kinesis.ways = ["well"] * 5 + ["failure", "well", "throttled", "cut"] + ["well"] * 20
    names = [f"i{number}" for number in range(60)]
    with ThreadPoolExecutor(8) as threads, _stream(server, tries=5) as stream:
        assert list(threads.map(lambda name: stream.get_records(name, 10), names)) == [_answer(name) for name in names]


def test_a_client_of_another_release_makes_all_calls() -> None:
    def call(parameters: Any) -> bytes:
        return bytes(parameters["ShardIterator"])

    calls = RepeatedCalls(SimpleNamespace(), "GetRecords", call)  # type: ignore[arg-type]
    assert [calls.body({"ShardIterator": name}) for name in (b"a", b"b")] == [b"a", b"b"]
