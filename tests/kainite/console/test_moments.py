"""Moments as a form sends them."""

from __future__ import annotations

import pytest

from kainite.console.moments import moment_ms, moment_s


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:01", 1.0), ("1970-01-01", 0.0), ("1970-01-01T01:00:01.5+01:00", 1.5), ("", None),
        ("soon", None), ("1700000000", None),
    ],
)  # fmt: skip
def test_a_moment_is_utc_unless_it_names_a_zone(text: str, at: float | None) -> None:
    assert moment_s(text) == at
    assert moment_ms(text) == (None if at is None else int(1000 * at))
