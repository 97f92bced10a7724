"""Requests are signed as botocore's signer signs them."""

from __future__ import annotations

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from kainite.aws.signature import SigningScope, host_of

MOMENT = "20261124T040506Z"


@pytest.mark.parametrize("body", [b"{}", b'{"ShardIterator": "AAAA/+=", "Limit": 10000}', "ü".encode()])
@pytest.mark.parametrize("token", [None, "FwoGZXIvYXdzE/+=="])
@pytest.mark.parametrize("secret", ["wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "another"])
@pytest.mark.parametrize(
    "url",
    [
        "https://kinesis.eu-central-1.amazonaws.com/",
        "https://vpce-1.example:8443/",
        "http://localhost:80/",
        "http://127.0.0.1:4566/",
        "http://[::1]:4566/",
        "https://gateway.example/kinesis/",
    ],
)
def test_a_signature_is_botocores(url: str, secret: str, token: str | None, body: bytes) -> None:
    credentials = ReadOnlyCredentials("AKID", secret, token)
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Kinesis_20131202.GetRecords"}
    headers |= {"X-Amz-Date": MOMENT, "X-Spaced": "  two   words "}
    headers |= {"X-Amz-Security-Token": token} if token else {}
    request = AWSRequest("POST", url, headers, body)
    request.context["timestamp"] = MOMENT
    signer = SigV4Auth(credentials, "kinesis", "eu-central-1")
    expected = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)

    path = "/" + url.split("/", 3)[3]
    signed = {name.lower(): value for name, value in headers.items()} | {"host": host_of(url)}
    made = SigningScope(path, "eu-central-1", "kinesis").authorization(signed, body, MOMENT, credentials)

    names = ";".join(sorted(signed))
    scope = "20261124/eu-central-1/kinesis/aws4_request"
    assert made == f"AWS4-HMAC-SHA256 Credential=AKID/{scope}, SignedHeaders={names}, Signature={expected}"


def test_each_day_has_its_key() -> None:
    credentials = ReadOnlyCredentials("AKID", "secret", None)
    scope = SigningScope("/", "us-east-1", "kinesis")
    days = ("20261124T235959Z", "20261125T000000Z", "20261124T235959Z")

    first, second, again = (
        scope.authorization({"host": "h", "x-amz-date": day}, b"", day, credentials) for day in days
    )

    assert first == again
    assert first.rpartition("=")[2] != second.rpartition("=")[2]
