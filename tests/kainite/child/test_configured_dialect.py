"""The settings name the dialect, and each child gets a conversation of its own."""

from __future__ import annotations

import pytest

from kainite.child.configured_dialect import dialect_of
from kainite.settings import ChildProtocol, ChildSettings


@pytest.mark.parametrize(
    ("protocol", "begins"),
    [
        (ChildProtocol.JSON_LINES, b'{"action":"initialize","shardId":"s","sequenceNumber":"TRIM_HORIZON"'),
        (ChildProtocol.JSON_LINES_V0, b'{"action":"initialize","shardId":"s"}'),
        (ChildProtocol.MARKERS, b""),  # the child has got its parameters already
    ],
)
def test_a_dialect_speaks_the_protocol_of_the_settings(protocol: ChildProtocol, begins: bytes) -> None:
    said = dialect_of(ChildSettings(("true",), protocol=protocol)).initialize("s", "TRIM_HORIZON", 0)

    assert said is not None
    assert said.startswith(begins)
    assert bool(said) is bool(begins)


@pytest.mark.parametrize("protocol", ChildProtocol)
def test_two_children_have_two_conversations(protocol: ChildProtocol) -> None:
    settings = ChildSettings(("true",), protocol=protocol)

    assert dialect_of(settings) is not dialect_of(settings)
