"""What this LocalStack is, and where it differs from AWS in what Kainite relies on."""

from __future__ import annotations

import urllib.request

import orjson


def test_it_is_the_pinned_version(endpoint: str) -> None:
    with urllib.request.urlopen(f"{endpoint}/_localstack/health", timeout=30) as answer:
        health = orjson.loads(answer.read())

    assert health["version"] == "4.14.0"
    states = {health["services"][name] for name in ("kinesis", "dynamodb", "s3", "cloudwatch")}
    assert states <= {"available", "running"}
