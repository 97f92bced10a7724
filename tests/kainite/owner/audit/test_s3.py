"""The audit trail on S3: an object for each truncation, in the log's order; what fails says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import pytest

from kainite.aws.clients import client
from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.s3 import S3Audit
from kainite.settings import AwsSettings, S3Folder
from support.http_double import DoubleServer
from support.names import unique


class Bucket:
    """A bucket that may be missing, and the trail of log partition 0 in it."""

    def __init__(self, endpoint: str, prefix: str = "trail") -> None:
        self._s3 = client("s3", AwsSettings("us-east-1", s3_endpoint=endpoint, tries=1))
        self.folder = S3Folder(unique("audit"), prefix)
        self.trail = S3Audit(self._s3, self.folder, "0")

    def make(self) -> None:
        self._s3.create_bucket(Bucket=self.folder.bucket)

    def objects(self) -> list[str]:
        """Returns the keys in the order of a listing."""
        return [each["Key"] for each in self._s3.list_objects_v2(Bucket=self.folder.bucket).get("Contents", [])]

    def content_type(self, key: str) -> str:
        return self._s3.get_object(Bucket=self.folder.bucket, Key=key)["ContentType"]


def made(endpoint: str, prefix: str = "trail") -> Bucket:
    place = Bucket(endpoint, prefix)
    place.make()
    return place


@pytest.fixture
def bucket(moto_endpoint: str) -> Bucket:
    return made(moto_endpoint)


def row(tid: int) -> LogRow:
    return LogRow(f"T-{tid}", id=tid, status=UnitStatus.COMMITTED)


def test_no_rows_make_no_object(bucket: Bucket) -> None:
    bucket.trail.write([], 0, 10)
    assert bucket.objects() == []


def test_keys_begin_with_prefix_and_partition_and_a_listing_is_in_the_logs_order(bucket: Bucket) -> None:
    trail = bucket.trail
    for low, high in ((0, 9), (9, 10), (10, 100), (100, 10**18)):
        trail.write([row(low)], low, high)

    assert bucket.objects() == [
        "trail/0/00000000000000000000-00000000000000000008.jsonl.zst",
        "trail/0/00000000000000000009-00000000000000000009.jsonl.zst",
        "trail/0/00000000000000000010-00000000000000000099.jsonl.zst",
        "trail/0/00000000000000000100-00999999999999999999.jsonl.zst",
    ]
    assert bucket.content_type(bucket.objects()[0]) == "application/zstd"


def test_a_bucket_without_a_prefix_has_partitions_at_its_root(moto_endpoint: str) -> None:
    place = made(moto_endpoint, prefix="")
    place.trail.write([row(0)], 0, 1)

    assert place.objects() == [f"0/{0:020}-{0:020}.jsonl.zst"]


def test_a_missing_bucket_is_named_with_what_to_do(moto_endpoint: str) -> None:
    place = Bucket(moto_endpoint)

    with pytest.raises(LogUnavailableError, match=rf"{place.folder} .*NoSuchBucket.*make the bucket"):
        place.trail.write([row(0)], 0, 1)


def test_an_endpoint_that_is_gone_is_named() -> None:
    place = Bucket("http://127.0.0.1:1")

    with pytest.raises(LogUnavailableError, match=r"s3://.*http://127\.0\.0\.1:1.*the log keeps everything"):
        place.trail.write([row(0)], 0, 1)


class Refusing(BaseHTTPRequestHandler):
    """S3 for a role without s3:PutObject."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[Bucket]:
    with closing(DoubleServer(Refusing)) as server:
        yield Bucket(server.endpoint)


def test_access_denied_says_which_permission_is_missing(refusing: Bucket) -> None:
    with pytest.raises(LogUnavailableError, match=r"AccessDenied.*allow the worker's role s3:PutObject"):
        refusing.trail.write([row(0)], 0, 1)
