"""What is wrong with messages that are no JSON is guessed from how they look."""

from __future__ import annotations

import pytest

from kainite.child.markers.misread import why_no_json, why_unasked

MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (MARK + b"{}", "a byte-order mark stands before its first message"),
        (b'ready {"a":1}', "text stands before its JSON, a start banner perhaps: 'ready'"),
        (b"transform 1.0", "no JSON, a start banner perhaps: 'transform 1.0'"),
        (b'{"a":', "does an EOM stand in its payload?: '{\"a\":'"),
        (b'ready {"a":', "does an EOM stand in its payload?"),
        (b"\xff{", "does an EOM stand in its payload?"),
    ],
)
def test_the_cause_is_named(message: bytes, why: str) -> None:
    assert why in why_no_json(message)


def test_long_text_is_cut_and_the_cut_is_shown() -> None:
    assert why_no_json(b"x" * 1000).count("x") < 200
    assert "…" in why_no_json(b"x" * 1000)


@pytest.mark.parametrize(
    ("payload", "why"),
    [(MARK, "a byte-order mark"), (b"ready", "a start banner perhaps"), (b'{"uow":"T"}', ""), (b"", "")],
)
def test_what_comes_unasked_is_guessed_too(payload: bytes, why: str) -> None:
    assert why in why_unasked(payload)
    assert bool(why) == bool(why_unasked(payload))
