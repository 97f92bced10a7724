"""KCL's keys that are accepted without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.settings.keys.without_effect import INERT_KEYS, InertKey, is_client_key, why_without_effect


@pytest.mark.parametrize("key", INERT_KEYS, ids=lambda key: key.name)
def test_each_key_has_a_reason_and_a_default_that_it_allows(key: InertKey) -> None:
    assert why_without_effect(key.name) == key.reason
    if key.default and key.default != "no limit":
        key.kind.parse(key.default, Path())


@pytest.mark.parametrize(
    ("key", "inert"),
    [
        ("kinesisClient.httpClient", True),
        ("kinesisClient.overrideConfiguration.retryPolicy", True),
        ("dynamoDbClient.accountIdEndpointMode", True),
        ("cloudWatchClient.accountIdEndpointMode", False),
        ("kinesisClient.region", False),
        ("kinesisClient.", False),
        ("httpClient", False),
        ("streamName", False),
    ],
)
def test_a_nested_setting_of_a_client_is_known_by_its_builder(key: str, inert: bool) -> None:
    assert (why_without_effect(key) is not None) is inert
    assert is_client_key(key) is ("." in key)
