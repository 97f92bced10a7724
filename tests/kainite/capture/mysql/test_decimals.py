"""Decimals of any precision keep all their digits."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.decimals import decimal_size, decimal_text


@pytest.mark.parametrize(
    ("digits", "precision", "scale", "data"),
    [
        ("1234567890.1234", 14, 4, "810dfb38d204d2"),  # the manual's example of decimal2bin
        ("-1234567890.1234", 14, 4, "7ef204c72dfb2d"),
        ("0.0", 2, 1, "8000"),
        ("-9", 1, 0, "76"),
    ],
)
def test_digits_signs_and_points(digits: str, precision: int, scale: int, data: str) -> None:
    raw = bytes.fromhex(data)
    assert decimal_size(precision, scale) == len(raw)
    assert decimal_text(raw, precision, scale) == digits
