"""A target whose encoding is not UTF-8, and values that cannot be sent at all: the unit fails alone, with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from support.names import unique
from support.stores import Database, Store, Stores

NOTES = "CREATE TABLE note (id bigint PRIMARY KEY, what text, doc jsonb)"


@pytest.fixture
def encoded(postgres_server: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    name = unique("test").replace("-", "_")
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE \"{name}\" ENCODING '{request.param}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    opened = Stores(Database(postgres_server.replace("/postgres?", f"/{name}?")))
    yield opened.open(NOTES)
    opened.close()
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def told(store: Store) -> list[tuple[int, str]]:
    with psycopg.connect(store.database.url, client_encoding="UTF8") as connection:
        return connection.execute("SELECT id, what FROM note ORDER BY id").fetchall()


@pytest.mark.parametrize("encoded", ["LATIN1", "SQL_ASCII"], indirect=True)
def test_what_the_encoding_has_is_stored(encoded: Store) -> None:
    assert encoded.statuses(encoded.unit(1, encoded.insert("note", id=1, what="é ü"))) == ["committed"]
    assert told(encoded) == [(1, "é ü")]


@pytest.mark.parametrize("encoded", ["LATIN1"], indirect=True)
def test_what_it_lacks_fails_the_one_unit_that_has_it(encoded: Store) -> None:
    units = [encoded.unit(tid, encoded.insert("note", id=tid, what="5 €" if tid == 3 else "é")) for tid in range(1, 6)]
    outcomes = encoded.apply(*units)
    assert [outcome.status.value for outcome in outcomes] == ["committed"] * 2 + ["failed"] + ["committed"] * 2
    assert "LATIN1" in (outcomes[2].cause or "")
    assert [row for row, _ in told(encoded)] == [1, 2, 4, 5]


def nested(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("what", ["a name with half a surrogate pair", "a document that no writer takes"])
def test_a_value_that_cannot_be_sent_fails_the_one_unit_that_has_it(postgres: str, what: str) -> None:
    opened = Stores(Database(postgres))
    store = opened.open(NOTES)
    units = [store.unit(tid, store.insert("note", id=tid, what="x")) for tid in range(1, 6)]
    if what.startswith("a name"):
        units[2] = replace(units[2], uow="T-\ud800")
    else:
        units[2] = store.unit(3, store.insert("note", id=3, doc=nested(100_000)))
    outcomes = store.apply(*units)
    assert [outcome.status.value for outcome in outcomes] == ["committed"] * 2 + ["failed"] + ["committed"] * 2
    assert (outcomes[2].cause or "").startswith("a value cannot be sent: ")
    opened.close()
