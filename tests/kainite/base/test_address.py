"""Addresses as text, and which of them other hosts cannot reach."""

from __future__ import annotations

import pytest

from kainite.base.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", Address("127.0.0.1", 9000)),
        ("log.internal:0", Address("log.internal", 0)),
        ("[::1]:9000", Address("::1", 9000)),
        (
            "ip-10-0-0-1.eu-central-1.compute.internal:65535",
            Address("ip-10-0-0-1.eu-central-1.compute.internal", 65535),
        ),
    ],
)
def test_an_address_reads_back(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "9000", ":9000", "host", "host:", "host:x", "host:65536", "::1:9", "u@h:1", "a b:1"]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be host:port"):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("localhost.example", False),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("host", False),
    ],
)
def test_loopback_is_told_by_the_address(host: str, loopback: bool) -> None:
    assert Address(host, 1).is_loopback is loopback
