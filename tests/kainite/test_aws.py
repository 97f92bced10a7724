"""Clients of AWS services."""

from __future__ import annotations

import os

import pytest

from kainite.aws import client
from kainite.errors import SettingsError
from kainite.settings import AwsSettings


def test_each_service_has_its_own_endpoint() -> None:
    settings = AwsSettings("eu-west-1", kinesis_endpoint="http://k:1", dynamodb_endpoint="http://d:2")

    assert client("kinesis", settings).meta.endpoint_url == "http://k:1"
    assert client("dynamodb", settings).meta.endpoint_url == "http://d:2"
    assert client("dynamodb", AwsSettings("eu-west-1")).meta.region_name == "eu-west-1"


def test_a_client_speaks_to_its_endpoint(moto_endpoint: str) -> None:
    settings = AwsSettings("us-east-1", dynamodb_endpoint=moto_endpoint)

    assert "TableNames" in client("dynamodb", settings).list_tables()


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
