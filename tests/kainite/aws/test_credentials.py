"""Credentials by the providers of the settings, with moto's STS and files of their own."""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from kainite.aws.clients import client
from kainite.base.errors import SettingsError
from kainite.settings import AwsSettings, ClientSettings
from kainite.settings.credentials import parse_chain
from support.http_double import DoubleServer

ROLE = "StsAssumeRoleCredentialsProvider|arn:aws:iam::123456789012:role/reader|kainite"


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Makes a host with one profile, and nothing in its environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text("[prod]\naws_access_key_id=PROFILEKEY\naws_secret_access_key=s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def settings(chain: str, dynamodb: str | None = None) -> AwsSettings:
    own = ClientSettings(credentials=parse_chain(dynamodb) if dynamodb else ())
    return AwsSettings("us-east-1", kinesis=ClientSettings(credentials=parse_chain(chain)), dynamodb=own)


def key_of(made: Any) -> str:
    """Returns the key id that the client signs with, taken from an address that it signed."""
    operation = {"kinesis": "list_streams", "dynamodb": "list_tables"}[made.meta.service_model.service_name]
    address = urlsplit(made.generate_presigned_url(operation))
    return str(parse_qs(address.query)["X-Amz-Credential"][0].partition("/")[0])


def test_a_key_may_stand_in_the_file() -> None:
    assert key_of(client("kinesis", settings("StaticCredentialsProvider|FILEKEY|secret"))) == "FILEKEY"


def test_a_profile_is_read_by_its_name() -> None:
    assert (
        key_of(client("kinesis", settings("com.amazonaws.auth.profile.ProfileCredentialsProvider|prod")))
        == "PROFILEKEY"
    )


def test_the_environment_is_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")

    for chain in ("EnvironmentVariableCredentialsProvider", "DefaultAWSCredentialsProviderChain"):
        assert key_of(client("kinesis", settings(chain))) == "ENVKEY"


def test_a_provider_that_cannot_be_used_here_leaves_it_to_the_rest() -> None:
    chain = (
        "SystemPropertyCredentialsProvider,ProfileCredentialsProvider|absent,ContainerCredentialsProvider,"
        "InstanceProfileCredentialsProvider,WebIdentityTokenFileCredentialsProvider,"
        f"{ROLE},EnvironmentVariableCredentialsProvider,ProfileCredentialsProvider|prod"
    )

    assert key_of(client("kinesis", settings(chain))) == "PROFILEKEY"


def test_other_services_use_those_of_kinesis_unless_they_have_their_own() -> None:
    shared = settings("StaticCredentialsProvider|FILEKEY|secret")
    own = settings("StaticCredentialsProvider|FILEKEY|secret", dynamodb="ProfileCredentialsProvider|prod")

    assert key_of(client("dynamodb", shared)) == "FILEKEY"
    assert key_of(client("dynamodb", own)) == "PROFILEKEY"


def test_a_role_is_assumed_at_its_own_endpoint(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    made = client("kinesis", settings(f"{ROLE}|endpoint={moto_endpoint}^us-east-1|externalId=example"))

    assert key_of(made).startswith("ASIA")  # of moto's STS: a key that ends


def test_a_role_that_cannot_be_assumed_leaves_it_to_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    nowhere = f"{ROLE}|endpoint=http://127.0.0.1:9^us-east-1"

    assert key_of(client("kinesis", settings(f"{nowhere},ProfileCredentialsProvider|prod"))) == "PROFILEKEY"


def test_a_chain_without_credentials_is_an_error_that_names_it() -> None:
    with pytest.raises(SettingsError, match="none of ContainerCredentialsProvider has any on this host"):
        client("kinesis", settings("ContainerCredentialsProvider"))


class PodIdentityAgent(BaseHTTPRequestHandler):
    """EKS's agent on a node: hands out a role's keys for a pod's token."""

    tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.tokens.append(self.headers["Authorization"])
        keys = {
            "AccessKeyId": "PODKEY", "SecretAccessKey": "s", "Token": "t", "Expiration": "2999-01-01T00:00:00Z",
        }  # fmt: skip
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(keys).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("chain", ["DefaultCredentialsProvider", "ContainerCredentialsProvider"])
def test_a_pods_identity_is_asked_for_with_its_token(
    chain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("of the pod")
    agent = DoubleServer(PodIdentityAgent)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{agent.endpoint}/v1/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    try:
        assert key_of(client("kinesis", settings(chain))) == "PODKEY"
    finally:
        agent.close()
    assert PodIdentityAgent.tokens[-1] == "of the pod"


@pytest.mark.parametrize(
    "chain",
    ["DefaultCredentialsProvider", "WebIdentityTokenFileCredentialsProvider", f"{ROLE}|endpointRegion=eu-north-1"],
    ids=["default", "named", "a role of another account behind it"],
)
def test_a_service_accounts_token_is_changed_for_a_role(
    chain: str, tmp_path: Path, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("of the service account")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_endpoint)
    assert key_of(client("kinesis", settings(chain))).startswith("ASIA")
