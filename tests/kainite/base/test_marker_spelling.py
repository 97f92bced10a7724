from __future__ import annotations

import subprocess
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.marker_spelling import escape, unescape


@given(st.binary())
def test_every_marker_reads_back_as_it_is_spelled(marker: bytes) -> None:
    spelled = escape(marker)
    assert unescape(spelled) == marker
    assert spelled.isascii()
    assert not any(character.isspace() or not character.isprintable() for character in spelled)


@given(st.text())
def test_any_text_is_a_marker_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert unescape(escape(unescape(text))) == unescape(text)


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        (r"\n", b"\n"),
        (r"\x06", b"\x06"),
        (r"\X", None),
        ("\\", None),
        (r"\x6", None),
        (r"\0", b"\0"),
        ("é", b"\xc3\xa9"),
    ],
)
def test_spellings(text: str, marker: bytes | None) -> None:
    if marker is None:
        with pytest.raises(ValueError, match="is none of"):
            unescape(text)
    else:
        assert unescape(text) == marker


def test_a_shell_reads_the_spelling_as_it_is_meant() -> None:
    every_byte = bytes(range(256))
    done = subprocess.run(["bash", "-c", 'printf %b "$1"', "_", escape(every_byte)], capture_output=True, check=True)
    assert done.stdout == every_byte
