"""Clients of AWS services."""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

import botocore
import pytest
from botocore.exceptions import ProxyConnectionError
from botocore.loaders import JSONFileLoader

from kainite import __version__
from kainite.aws.clients import client
from kainite.base.errors import SettingsError
from kainite.settings import AwsSettings, ClientSettings
from support.http_double import DoubleServer


def test_each_service_has_its_own_endpoint() -> None:
    settings = AwsSettings("eu-west-1", kinesis_endpoint="http://k:1", dynamodb_endpoint="http://d:2")

    assert client("kinesis", settings).meta.endpoint_url == "http://k:1"
    assert client("dynamodb", settings).meta.endpoint_url == "http://d:2"
    assert client("dynamodb", AwsSettings("eu-west-1")).meta.region_name == "eu-west-1"


def test_a_client_speaks_to_its_endpoint(moto_endpoint: str) -> None:
    settings = AwsSettings("us-east-1", dynamodb_endpoint=moto_endpoint)

    assert "TableNames" in client("dynamodb", settings).list_tables()


def test_the_descriptions_of_services_are_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = AwsSettings("eu-west-1")
    client("dynamodb", settings)
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda _, path: pytest.fail(f"read again: {path}"))

    client("dynamodb", settings)


@pytest.mark.parametrize(("app", "told"), [(None, ""), ("payments", " app/payments")])
def test_a_client_calls_itself_by_our_name_and_the_applications(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, app: str | None, told: str
) -> None:
    if app is not None:
        monkeypatch.setenv("AWS_SDK_UA_APP_ID", app)
    dynamodb = client("dynamodb", AwsSettings("us-east-1", dynamodb_endpoint=moto_endpoint))
    names: list[str] = []

    def look(request: Any, **_: object) -> None:
        names.append(request.headers["User-Agent"].decode())

    dynamodb.meta.events.register("before-send.dynamodb", look)
    dynamodb.list_tables()

    assert names == [f"kainite/{__version__} Botocore/{botocore.__version__}{told}"]


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("nothing_set")
def test_missing_credentials_say_where_to_set_them() -> None:
    with pytest.raises(SettingsError, match="AWS_ACCESS_KEY_ID"):
        client("dynamodb", AwsSettings("us-east-1"))


@pytest.mark.usefixtures("nothing_set")
def test_a_missing_region_says_where_to_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")

    with pytest.raises(SettingsError, match="regionName"):
        client("kinesis", AwsSettings())


def test_s3_is_where_dynamodb_is_and_its_buckets_are_paths_of_an_endpoint_of_ones_own() -> None:
    aws = AwsSettings("eu-west-1", dynamodb=ClientSettings(region="eu-central-1"), s3_endpoint="http://minio:9000")

    own, theirs = client("s3", aws), client("s3", AwsSettings("eu-west-1"))

    assert own.meta.region_name == "eu-central-1"
    assert address(own) == "http://minio:9000/orders/k"
    assert address(theirs).startswith("https://orders.s3.")


def address(s3: Any) -> str:
    """Returns the address that an object is fetched from."""
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "orders", "Key": "k"})
    return str(url).partition("?")[0]


class ClosedProxy(BaseHTTPRequestHandler):
    """Notes where it should connect to, and refuses."""

    asked: ClassVar[list[str]] = []

    def do_CONNECT(self) -> None:
        self.asked.append(self.path)
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        pass


def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    proxy = DoubleServer(ClosedProxy)
    monkeypatch.setenv("HTTPS_PROXY", proxy.endpoint)
    made = client("kinesis", AwsSettings("eu-north-1", tries=1))
    try:
        with pytest.raises(ProxyConnectionError):
            made.list_streams()
    finally:
        made.close()
        proxy.close()
    assert set(ClosedProxy.asked) == {"kinesis.eu-north-1.amazonaws.com:443"}
