"""Rows of COPY's text, as the values that deltas of the same rows have."""

from __future__ import annotations

from kainite_spark.load.copied_rows import copied_rows


def test_values_are_those_of_a_delta() -> None:
    block = b"7\tt\ta\\tb\\\\N\\n\\r\\b\\f\\v\xc3\xa4\n\\N\t\\N\t\\N\n8\tf\t\n"
    assert list(copied_rows(block, {"id": 20, "flag": 16, "name": 25})) == [
        {"id": 7, "flag": True, "name": "a\tb\\N\n\r\b\f\vä"},
        {"id": None, "flag": None, "name": None},
        {"id": 8, "flag": False, "name": ""},
    ]


def test_an_empty_text_is_a_row_and_no_row_is_none() -> None:
    assert list(copied_rows(b"\n\n", {"name": 25})) == [{"name": ""}, {"name": ""}]
    assert list(copied_rows(b"", {"name": 25})) == []
