"""Display: control characters become escapes, and JSON reads back as it was."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base import display

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
DIRECTIONS = frozenset("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_harmless(text: str, allowed: str = "") -> bool:
    return all(
        character in allowed or (unicodedata.category(character) not in ("Cc", "Cs") and character not in DIRECTIONS)
        for character in text
    )


@given(ANY_TEXT)
def test_no_control_character_is_left(text: str) -> None:
    assert is_harmless(display.one_line(text))
    assert is_harmless(display.lines(text), "\t\n")
    display.one_line(text).encode()


@given(ANY_TEXT)
def test_what_is_harmless_stays(text: str) -> None:
    if is_harmless(text) and "\ufeff" not in text:
        assert display.one_line(text) == display.lines(text) == text


@given(
    st.recursive(ANY_TEXT | st.integers() | st.none(), lambda item: st.lists(item) | st.dictionaries(ANY_TEXT, item))
)
def test_json_is_harmless_and_reads_back(value: object) -> None:
    text = display.as_json(value)
    assert is_harmless(text)
    text.encode()
    # Two halves of a surrogate pair, each alone, read back as the character that they make.
    assert json.dumps(json.loads(text)) == json.dumps(json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("text", "shown"), [("\x1b[2J", "\\x1b[2J"), ("a\nb\tc", "a\\nb\\tc"), ("\x9b", "\\x9b"), ("\u202e", "\\u202e")]
)
def test_escapes_are_those_of_python(text: str, shown: str) -> None:
    assert display.one_line(text) == shown
