"""A program finds the owner of its partition by HEAD, or is told why there is none."""

from __future__ import annotations

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogUnavailableError
from kainite.owner.mount import mount
from kainite.peers.address import of_listener
from kainite.store.memory import MemoryStore
from kainite.waltz.client import Owner
from kainite.waltz.connecting import finder


async def test_the_owner_that_head_names_is_found() -> None:
    store = MemoryStore()
    mount(store, "0", "w", 1000.0, address=of_listener("127.0.0.1", 9).as_text(), token="t")
    assert await finder(store, "0")() == Owner(Address("127.0.0.1", 9), 1, "t")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (None, "run kainite log serve"),
        ("", "set logApplicationsListen and logApplicationsAdvertise there"),
        ("127.0.0.1:9@another stack", "set logApplicationsListen"),
    ],
)
async def test_why_there_is_no_owner_is_told(address: str | None, said: str) -> None:
    store = MemoryStore()
    if address is not None:
        mount(store, "0", "w", 1000.0, address=address)
    with pytest.raises(LogUnavailableError, match=said):
        await finder(store, "0")()
