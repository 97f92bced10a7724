"""Logs: whatever an event holds, a terminal gets one harmless line, and a reader of JSON gets the text."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.logs import _FIELDS, JsonFormatter, KeyValueFormatter
from kainite.base.redaction import learn

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
SECRET = "geheim%41/x"


def record(message: str, fields: dict[str, object], error: Exception | None = None) -> logging.LogRecord:
    made = logging.LogRecord("x", logging.INFO, "x.py", 1, message, None, None)
    setattr(made, _FIELDS, fields)
    if error is not None:
        try:
            raise error
        except Exception:
            made.exc_info = sys.exc_info()
    return made


def harmful(text: str, allowed: str = "") -> set[str]:
    return {c for c in text if (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000) and c not in allowed}


@given(ANY_TEXT, ANY_TEXT)
def test_a_text_line_is_one_line_without_control_characters(message: str, value: str) -> None:
    assert not harmful(KeyValueFormatter().format(record(message, {"line": value})))


@given(ANY_TEXT)
def test_a_traceback_has_no_control_characters_but_its_line_ends(text: str) -> None:
    assert not harmful(KeyValueFormatter().format(record("failed", {}, ValueError(text))), "\n\t")


@given(ANY_TEXT)
def test_a_line_of_json_reads_back(value: str) -> None:
    line = JsonFormatter().format(record("said", {"line": value}, ValueError(value)))
    assert not harmful(line)
    assert json.dumps(json.loads(line)["line"]) == json.dumps(json.loads(json.dumps(value)))


@pytest.mark.parametrize("formatter", [KeyValueFormatter(), JsonFormatter()])
@pytest.mark.parametrize("as_error", [False, True])
def test_a_secret_is_in_no_part_of_a_line(formatter: logging.Formatter, as_error: bool) -> None:
    learn([SECRET])
    line = formatter.format(
        record(f"met {SECRET}", {"cause": ValueError(SECRET), "all": [SECRET, {"x": SECRET}]}, ValueError(SECRET))
    )
    assert SECRET not in line
    assert "geheim" not in line


def test_numbers_and_enums_stay_as_they_are() -> None:
    line = json.loads(JsonFormatter().format(record("x", {"n": 3, "t": True, "list": [1, 2], "huge": 2**70})))
    assert (line["n"], line["t"], line["list"], line["huge"]) == (3, True, [1, 2], 2**70)
