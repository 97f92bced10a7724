"""A message comes out of its emit line as it went in."""

from __future__ import annotations

import json

import pytest

from kainite.child.markers.emit_line import emit_line, message_of


@pytest.mark.parametrize("message", [b"", b"{}", b'{"uow":"T-1"}', b"]}", b"no JSON\n", b"\xff\x00"])
def test_a_message_comes_out_of_its_line_byte_for_byte(message: bytes) -> None:
    assert message_of(emit_line(message)) == message


def test_a_delta_makes_an_emit_line_of_one_delta() -> None:
    assert json.loads(emit_line(b'{"uow":"T-1"}')) == {"action": "emit", "deltas": [{"uow": "T-1"}]}
