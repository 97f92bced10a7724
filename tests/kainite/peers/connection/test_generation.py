"""An owner's generation: settled by its first message, and the same from then on."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.peers.connection.generation import OwnerGeneration


@pytest.mark.parametrize("first", [3, 4])
def test_the_owner_that_head_named_or_a_newer_one_is_settled_on(first: int) -> None:
    generation = OwnerGeneration(3)
    generation.check(first)
    generation.check(first)
    assert generation.value == first
    with pytest.raises(LogProtocolError, match="came from an owner of"):
        generation.check(first + 1)
    with pytest.raises(LogUnavailableError, match="it was replaced"):
        generation.check(first - 1)


def test_an_owner_that_was_replaced_is_left() -> None:
    with pytest.raises(LogUnavailableError, match="generation 2; it was replaced"):
        OwnerGeneration(3).check(2)
