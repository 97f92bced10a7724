"""Every collation of the server: texts have one token exactly when the server takes them for one, or a coarse token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import combinations

import pymysql
import pytest

from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.type_families import family_of
from kainite.uow.canonical import canonical_of, is_opaque
from kainite.uow.catalogue.tables import Column
from kainite_spark.targets.mariadb.literals import quoted_text

WORDS = (
    "a", "A", "a ", "a  ", "a\t", "ä", "Ä", "á", "a\u0308", "b", "ab", "aB", "ss", "ß", "ẞ", "ae", "æ", "Æ", "ø", "o",
    "Ø", "oe", "œ", "ü", "u", "ue", "Y", "y", "i", "I", "İ", "ı", "Ⅰ", "n", "ñ", "ç", "c", "ch", "ij", "ĳ", "1", "¹",
    "①", "-", "a-b", "\u00a0", "a\u00ad", "あ", "ア", "ｱ", "中", "😀", "😁", "\ufffd", "A\0", "a\0b",
)  # fmt: skip


@pytest.fixture
def words(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    with closing(connect(mariadb)) as connection:
        connection.query("CREATE TABLE words (w varchar(20) COLLATE utf8mb4_nopad_bin)")
        connection.query(f"INSERT INTO words VALUES {', '.join(f'({quoted_text(word)})' for word in WORDS)}")
        yield connection


def rows(connection: pymysql.connections.Connection, query: str) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def known_to(connection: pymysql.connections.Connection, charset: str) -> list[str]:
    """Returns the words that a character set has."""
    told = f"CONVERT(CONVERT(w USING {charset}) USING utf8mb4) COLLATE utf8mb4_nopad_bin"
    return [word for (word,) in rows(connection, f"SELECT w FROM words WHERE {told} = w")]


def alike(connection: pymysql.connections.Connection, charset: str, collation: str) -> set[frozenset[str]]:
    """Returns the pairs of words that the server takes for one."""
    one, other = (f"CONVERT({place}.w USING {charset}) COLLATE {collation}" for place in ("a", "b"))
    found = rows(connection, f"SELECT a.w, b.w FROM words a JOIN words b ON {one} = {other}")
    return {frozenset(pair) for pair in found}


def test_every_collation_is_exact_or_coarse(words: pymysql.connections.Connection) -> None:
    view = "information_schema.collation_character_set_applicability"
    exact = coarse = 0
    for collation, charset in rows(words, f"SELECT full_collation_name, character_set_name FROM {view}"):
        if charset == "binary":  # of columns of bytes
            continue
        canonical = canonical_of([Column("c", "varchar(20)", family_of("varchar", "varchar(20)", collation))])
        if is_opaque(canonical):
            coarse += 1
            assert len({canonical(word) for word in WORDS}) == 1, collation
            continue
        exact += 1
        same = alike(words, charset, collation)
        for one, other in combinations(known_to(words, charset), 2):
            told = canonical(one) == canonical(other)
            stripped = frozenset(word.rstrip(" ") for word in (one, other))  # char(n) has no spaces at the end
            assert told == (len(stripped) == 1 or stripped in same), (collation, one, other)
            assert told or frozenset((one, other)) not in same, (collation, one, other)
    assert exact >= 15
    assert coarse >= 200
