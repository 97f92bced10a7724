"""A PostgreSQL source of which all is there, and of which one thing is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.doctor.finding import DoctorFinding, FindingState
from support.doctored import DoctoredFile
from support.postgresql_source import source

__all__ = ["source"]


@pytest.fixture
def ready(source: SourceSlot) -> Iterator[psycopg.Connection]:
    """Gives a session with a source that has a slot, and no table without a key."""
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE note ADD PRIMARY KEY (text)")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [source.slot])
        yield connection


def of_the_source(doctored: DoctoredFile, source: SourceSlot, *more: str) -> list[DoctorFinding]:
    """Returns what is wrong with the source; a slot without a limit is a warning here in any case."""
    words = ["kainite-extract-postgresql", "--source", f"'{source.url}'", "--slot", source.slot]
    doctored.write(extractorName=" ".join([*words, "--publication", source.publication, *more]), target="")
    found = [finding for finding in doctored.asked(["extract"]) if finding.area == "source"]
    assert found
    return [finding for finding in found if finding.state is FindingState.WRONG]


def test_all_is_well(doctored: DoctoredFile, source: SourceSlot, ready: psycopg.Connection) -> None:
    assert of_the_source(doctored, source) == []


def test_a_slot_that_is_missing(doctored: DoctoredFile, source: SourceSlot, ready: psycopg.Connection) -> None:
    ready.execute("SELECT pg_drop_replication_slot(%s)", [source.slot])
    [finding] = of_the_source(doctored, source)
    ready.execute(finding.remedy.rpartition(", or")[0].encode())
    assert of_the_source(doctored, source) == []


def test_a_slot_of_another_plugin(doctored: DoctoredFile, source: SourceSlot, ready: psycopg.Connection) -> None:
    ready.execute("SELECT pg_drop_replication_slot(%s)", [source.slot])
    ready.execute("SELECT pg_create_physical_replication_slot(%s)", [source.slot])
    [finding] = of_the_source(doctored, source)
    assert "pgoutput" in finding.what


def test_tables_that_the_publication_blocks(
    doctored: DoctoredFile, source: SourceSlot, ready: psycopg.Connection
) -> None:
    ready.execute("CREATE TABLE bare (x int)")
    assert of_the_source(doctored, source) == []
    [finding] = [finding for finding in doctored.asked(["extract"]) if "public.bare" in finding.what]
    assert finding.state is FindingState.WARNING
    assert "ADD PRIMARY KEY" in finding.remedy
    ready.execute("ALTER TABLE item REPLICA IDENTITY NOTHING")
    [finding] = of_the_source(doctored, source)
    ready.execute(finding.remedy.encode())
    assert of_the_source(doctored, source) == []


def test_a_publication_that_lacks_a_table_or_is_missing(
    doctored: DoctoredFile, source: SourceSlot, ready: psycopg.Connection
) -> None:
    [finding] = of_the_source(doctored, source, "--table", "public.other")
    assert "lacks public.other" in finding.what
    ready.execute("DROP PUBLICATION changes")
    [finding] = of_the_source(doctored, source)
    assert "does not exist" in finding.what


def test_a_role_that_may_not_replicate(doctored: DoctoredFile, source: SourceSlot, ready: psycopg.Connection) -> None:
    role = f"reader_{source.slot}"
    ready.execute(f"CREATE ROLE {role} LOGIN".encode())
    try:
        url = psycopg.conninfo.make_conninfo(source.url, user=role)
        [finding] = of_the_source(doctored, SourceSlot(url, source.slot, source.publication))
    finally:
        ready.execute(f"DROP ROLE {role}".encode())
    assert finding.remedy == f'ALTER ROLE "{role}" REPLICATION'


def test_a_source_that_does_not_answer(doctored: DoctoredFile) -> None:
    [finding] = of_the_source(doctored, SourceSlot("postgresql://u:hunter2@127.0.0.1:9/x", "s", "p"))
    assert "hunter2" not in finding.what


def test_another_extractor_is_not_asked_about(doctored: DoctoredFile) -> None:
    doctored.write(extractorName="echo one", target="")
    assert [finding for finding in doctored.asked(["extract"]) if finding.area == "source"] == []


def test_an_option_that_is_missing(doctored: DoctoredFile) -> None:
    doctored.write(extractorName="kainite-extract-postgresql --slot s", target="")
    [finding] = [finding for finding in doctored.asked(["extract"]) if finding.area == "source"]
    assert "--source" in finding.what
