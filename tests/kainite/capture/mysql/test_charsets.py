"""Bytes become characters as the server has them."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.charsets import Charset, Charsets
from kainite.capture.mysql.values import UncarriedError

KNOWN = {1: Charset("utf8mb4", False), 2: Charset("koi8r", True), 3: Charset("sjis", False), 4: Charset("ascii", True)}


def charsets(told: list[str], asked: list[bytes]) -> Charsets:
    def convert(name: str, data: bytes) -> str | None:
        asked.append(data)
        return data.decode({"koi8r": "koi8-r", "sjis": "shift_jis"}[name], "replace")

    return Charsets(KNOWN, convert, told.append)


def test_one_byte_sets_are_asked_for_once_and_others_for_each_text() -> None:
    asked: list[bytes] = []
    made = charsets([], asked)
    assert [made.text("Жук".encode("koi8-r"), 2) for _ in range(3)] == ["Жук"] * 3
    assert len(asked) == 256
    assert made.text("aあ".encode("shift_jis"), 3) == "aあ"
    assert made.text(b"plain", 3) == "plain"
    assert len(asked) == 257
    assert made.text("ä𝄞".encode(), 1) == "ä𝄞"


def test_what_is_no_text_of_its_set_is_refused() -> None:
    with pytest.raises(UncarriedError, match="not utf8mb4"):
        charsets([], []).text(b"\xff", 1)
    with pytest.raises(UncarriedError, match="not ascii"):
        charsets([], []).text(b"\xff", 4)


def test_an_unknown_collation_is_told_once() -> None:
    told: list[str] = []
    made = charsets(told, [])
    for _ in range(2):
        with pytest.raises(UncarriedError, match="collation 99"):
            made.text(b"a", 99)
    assert len(told) == 1
