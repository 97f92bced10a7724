"""Gives the suite a LocalStack, and marks all of its tests ``localstack``, which ``make test`` leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.localstack import localstack, throttling_localstack

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.localstack)
            # The first test waits for LocalStack's start, and the first start on a machine downloads it.
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with localstack() as address:
        yield address


@pytest.fixture(scope="session")
def throttling_endpoint() -> Iterator[str]:
    with throttling_localstack() as address:
        yield address


@pytest.fixture
def kinesis(endpoint: str) -> Any:
    import boto3

    return boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1")


@pytest.fixture(scope="session")
def dynamodb(endpoint: str) -> Any:
    import boto3

    return boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1")
