"""The publication is looked at: a table that it lacks would be missing without a gap."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.records import SourceKey
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.source_catalogue import LOOK_EVERY_S, SourceCatalogue


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalogue(source: SourceSlot, clock: Clock) -> Iterator[SourceCatalogue]:
    catalogue = SourceCatalogue(source.url, source.publication, clock=clock)
    yield catalogue
    catalogue.close()


def run(source: SourceSlot, *statements: str) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_publication_of_all_tables_takes_what_comes_and_goes(source: SourceSlot, catalogue: SourceCatalogue) -> None:
    catalogue.look(soon=True)
    run(source, "CREATE TABLE more (id int PRIMARY KEY)")
    catalogue.look(soon=True)
    run(source, "DROP TABLE more")
    catalogue.look(soon=True)


def test_a_table_that_leaves_the_publication_is_named(
    source: SourceSlot, catalogue: SourceCatalogue, clock: Clock
) -> None:
    run(source, "DROP PUBLICATION changes", "CREATE PUBLICATION changes FOR TABLE item, note")
    catalogue.look()
    run(source, "ALTER PUBLICATION changes DROP TABLE item")
    catalogue.look()  # not yet: the last look was just now
    clock.now += LOOK_EVERY_S
    with pytest.raises(SourceError, match=r"lacks public\.item: changes of it are not sent"):
        catalogue.look()


@pytest.mark.parametrize(
    ("statements", "cause"),
    [
        (["DROP PUBLICATION changes"], "does not exist on the source"),
        (["ALTER PUBLICATION changes SET (publish = 'insert')"], "does not publish all of insert, update and delete"),
        (["DROP PUBLICATION changes", "CREATE PUBLICATION changes"], "has no table"),
    ],
)
def test_a_publication_that_would_send_nothing_is_said(
    source: SourceSlot, catalogue: SourceCatalogue, statements: list[str], cause: str
) -> None:
    run(source, *statements)
    with pytest.raises(SourceError, match=cause):
        catalogue.look()


def test_an_expected_table_that_is_not_published_is_named(source: SourceSlot) -> None:
    catalogue = SourceCatalogue(source.url, source.publication, ("public.item", "public.elsewhere"))
    with pytest.raises(SourceError, match=r"lacks public\.elsewhere: "):
        catalogue.look()
    catalogue.close()


def test_a_primary_key_is_asked_for_once_until_the_table_is_described_anew(
    source: SourceSlot, catalogue: SourceCatalogue
) -> None:
    with psycopg.connect(source.url) as connection:
        row = connection.execute("SELECT 'item'::regclass::oid::int, 'note'::regclass::oid::int").fetchone()
    assert row is not None
    item, note = row
    assert catalogue.key(item).columns == {"id"}
    assert catalogue.key(note) == SourceKey()
    run(source, "ALTER TABLE item DROP CONSTRAINT item_pkey, ADD PRIMARY KEY (id, name)")
    assert catalogue.key(item).columns == {"id"}
    catalogue.forget_key(item)
    assert catalogue.key(item).columns == {"id", "name"}


def test_a_database_that_is_not_there_is_said_in_one_line() -> None:
    with pytest.raises(SourceError, match="the source's catalogue cannot be read: ") as caught:
        SourceCatalogue("host=/nonexistent", "changes")
    assert "\n" not in str(caught.value)
