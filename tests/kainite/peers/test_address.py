from __future__ import annotations

import pytest

from kainite.peers.address import OwnerAddress, from_text, of_listener


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.7:7070", OwnerAddress("10.0.0.7", 7070)),
        ("log.example:1", OwnerAddress("log.example", 1)),
        ("[::1]:9@boot net:[1]", OwnerAddress("::1", 9, "boot net:[1]")),
        ("127.0.0.1:65535@x", OwnerAddress("127.0.0.1", 65535, "x")),
    ],
)
def test_an_address_is_read_as_it_was_written(text: str, address: OwnerAddress) -> None:
    assert (from_text(text), address.as_text()) == (address, text)


@pytest.mark.parametrize("text", ["", "host", ":1", "host:", "host:0", "host:65536", "host:-1", "host:1x", "host:²"])
def test_what_is_no_address_is_none(text: str) -> None:
    assert from_text(text) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.3.2.1"])
def test_a_loopback_address_is_reachable_in_its_own_network_stack_alone(host: str) -> None:
    mine = of_listener(host, 7070)
    assert mine.is_reachable
    assert not OwnerAddress(host, 7070, "another boot net:[1]").is_reachable
    assert not OwnerAddress(host, 7070).is_reachable


def test_any_other_address_is_reachable_from_everywhere() -> None:
    assert of_listener("10.0.0.7", 7070) == OwnerAddress("10.0.0.7", 7070)
    assert OwnerAddress("10.0.0.7", 7070).is_reachable
