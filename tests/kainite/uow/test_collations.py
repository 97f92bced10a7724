"""The tables of characters are those of the server, character by character."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing

import pytest

from kainite.targets.mariadb.connection import connect
from kainite.uow.collations import general_ci, swedish_ci

BASIC = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
LATIN = [bytes([code]).decode("cp1252", "ignore") for code in range(256)]


@pytest.mark.parametrize(
    ("collation", "character_set", "folded", "characters"),
    [
        ("utf8mb4_general_ci", "utf8mb4", general_ci, [*BASIC, "\U0001f600", "\U00010428"]),
        ("utf8mb3_general_ci", "utf8mb3", general_ci, BASIC),
        ("latin1_swedish_ci", "latin1", swedish_ci, list(filter(None, LATIN))),
    ],
)
def test_characters_are_alike_that_are_one_to_the_server(
    mariadb_server: str, collation: str, character_set: str, folded: Callable[[str], str], characters: list[str]
) -> None:
    weights = weights_of(mariadb_server, collation, character_set, characters)
    groups = defaultdict(set)
    for character, weight in zip(characters, weights, strict=True):
        groups[weight].add(folded(character))
    assert [group for group in groups.values() if len(group) > 1] == []
    assert len({folded(character) for character in characters}) == len(groups)


def weights_of(url: str, collation: str, character_set: str, characters: list[str]) -> Iterable[bytes]:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for first in range(0, len(characters), 2_000):
            told = ", ".join(
                f"weight_string(convert(_utf32 X'{ord(each):08X}' using {character_set}) collate {collation})"
                for each in characters[first : first + 2_000]
            )
            cursor.execute(f"SELECT {told}")
            [row] = cursor.fetchall()
            yield from row


def test_a_text_is_folded_character_by_character() -> None:
    assert general_ci("Straße Ünïcode 😀") == "STRASE UNICODE \ufffd"
    assert general_ci("plain-1") == "PLAIN-1"
    assert swedish_ci("Ärende Øre") == "\\RENDE ØRE"
