"""Names in SQL text."""

from __future__ import annotations

import sqlite3

import pytest

from kainite_spark.targets.sql.identifiers import escaped_for_psycopg, quoted


@pytest.mark.parametrize(
    ("identifier", "text"),
    [("plain", '"plain"'), ("two words", '"two words"'), ('a"b', '"a""b"'), ("100%", '"100%"'), ("", '""')],
)
def test_a_name_is_quoted_whatever_is_in_it(identifier: str, text: str) -> None:
    assert quoted(identifier) == text


@pytest.mark.parametrize("identifier", ['a"; DROP TABLE x; --', "select", "ünï", "%s"])
def test_a_database_reads_the_quoted_name_back(identifier: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE {quoted(identifier)} (id integer)")
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    connection.close()
    assert names == [identifier]


def test_psycopg_finds_no_placeholder_in_escaped_text() -> None:
    assert escaped_for_psycopg('"100%s"') == '"100%%s"'
