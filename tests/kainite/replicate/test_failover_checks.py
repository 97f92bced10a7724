"""What a promotion of a standby would do to the extraction; with real standbys in tests/end_to_end."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate.failover_checks import look_at_failover
from kainite.replicate.findings import CheckFinding
from kainite.replicate.slot import found_slot
from support.replicas import run


@pytest.fixture
def standby(source: SourceSlot) -> Iterator[str]:
    """Gives a standby's slot, whose standby is away."""
    name = f"{source.slot}_standby"
    run(source.url, f"SELECT pg_create_physical_replication_slot('{name}')")
    yield name
    run(source.url, f"SELECT pg_drop_replication_slot('{name}')")


def look(source: SourceSlot) -> list[CheckFinding]:
    with psycopg.connect(source.url, autocommit=True) as connection:
        return list(look_at_failover(connection, found_slot(connection, source.slot), source.slot))


def test_a_source_without_standbys_is_not_spoken_of(source: SourceSlot) -> None:
    with create_slot(source):
        pass
    assert look(source) == []


def test_a_slot_that_is_not_there_is_not_spoken_of(source: SourceSlot, standby: str) -> None:
    assert look(source) == []


def test_a_slot_that_no_standby_keeps_says_what_a_promotion_costs(source: SourceSlot, standby: str) -> None:
    run(source.url, f"SELECT pg_create_logical_replication_slot('{source.slot}', 'pgoutput')")
    [found] = look(source)
    assert found.verdict == "warning"
    assert found.found.startswith(f"no standby has slot {source.slot}: ")
    assert f"ALTER_REPLICATION_SLOT {source.slot} (FAILOVER true)" in found.mend


def test_a_primary_that_does_not_wait_for_its_standby_is_told(source: SourceSlot, standby: str) -> None:
    with create_slot(source):
        pass
    [found] = look(source)
    assert found.found == "a standby that is promoted may lack what is extracted already, and is refused then"
    assert standby in found.mend
