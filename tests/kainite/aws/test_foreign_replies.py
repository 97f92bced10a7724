"""Replies of others than AWS: said as what they are, and never taken for an answer; AWS's own and its doubles' pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kainite.aws.clients import client
from kainite.aws.failures import Failure, classify
from kainite.aws.foreign_replies import ForeignReplyError
from kainite.base.errors import LeaseTableUnavailableError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import AwsSettings
from support.http_double import DoubleServer, JsonHandler

PORTAL = b"<html><title>Welcome! Please log in</title></html>"
PROXY = b'{"error": "blocked by policy 7"}'


class Foreign(JsonHandler):
    """Answers everything in one way."""

    status, body, kind = 200, PORTAL, "text/html"

    def serve(self, operation: str, request: dict[str, Any]) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)


REPLIES = [(200, PORTAL, "text/html"), (200, PROXY, "application/json"), (403, PORTAL, "text/html"),
           (204, b"", "text/plain"), (407, PROXY, "application/json")]  # fmt: skip


@pytest.fixture(params=REPLIES)
def endpoint(request: pytest.FixtureRequest, credentials: None) -> Iterator[str]:
    status, body, kind = request.param
    server = DoubleServer(type("ForeignNow", (Foreign,), {"status": status, "body": body, "kind": kind}))
    yield server.endpoint
    server.close()


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def test_dynamodbs_calls_name_what_answered(endpoint: str) -> None:
    dynamodb = client("dynamodb", AwsSettings("us-east-1", dynamodb_endpoint=endpoint))
    with pytest.raises(ForeignReplyError) as found:
        dynamodb.put_item(TableName="t", Item={"k": {"S": "v"}})  # it was not written, whatever the status is
    assert classify(found.value) is Failure.PASSING
    table = LeaseTable(dynamodb, "table")
    with pytest.raises(
        LeaseTableUnavailableError, match=f"{endpoint} answered HTTP .* is not DynamoDB: .*dynamoDBEndp"
    ):
        table.holder("shardId-0")


def test_kinesis_calls_name_what_answered(endpoint: str) -> None:
    stream = StreamClient(client("kinesis", AwsSettings("us-east-1", kinesis_endpoint=endpoint)), "s")
    for call in (stream.list_shards, stream.now, stream.identity):
        with pytest.raises(StreamUnavailableError, match=f"{endpoint} answered HTTP .* is not Kinesis: .*kinesisEndp"):
            call()
    with pytest.raises(ForeignReplyError, match=r"is not Kinesis: b'(<html>|\{\"error|')"):
        stream.get_records("iterator", 1)


def test_a_page_of_a_load_balancer_before_the_service_is_left_to_retries(credentials: None) -> None:
    server = DoubleServer(type("Busy", (Foreign,), {"status": 503}))
    try:
        kinesis = client("kinesis", AwsSettings("us-east-1", kinesis_endpoint=server.endpoint, tries=1))
        with pytest.raises(ClientError) as found:
            kinesis.list_streams()
    finally:
        server.close()
    assert classify(found.value) is Failure.PASSING


def test_doubles_of_aws_are_no_foreigners(moto_endpoint: str) -> None:
    settings = AwsSettings("us-east-1", dynamodb_endpoint=moto_endpoint, kinesis_endpoint=moto_endpoint)
    assert "TableNames" in client("dynamodb", settings).list_tables()
    assert "StreamNames" in client("kinesis", settings).list_streams()
    with pytest.raises(ClientError, match="ResourceNotFound"):
        client("dynamodb", settings).describe_table(TableName="none")
