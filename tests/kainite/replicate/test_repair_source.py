"""What a repair reads from a source of either kind, and the units' names from which the log reads its point."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.capture.mysql import same_place
from kainite.capture.places import commit_place_of
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.binlog_point import number_now
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.known_rows import Explanation
from kainite.replicate.paired_ends import paired_tables_to_compare
from kainite.replicate.repair_source import BinlogRepairs, PostgresRepairs
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.verify_report import RowReport
from support.binlog_loading import binlog_loading
from support.mariadb_source import source_database
from support.replica import replica
from support.replicas import LOG, run, tables_of

RUN = "repair-20260101T120000Z-0a1b"
PART = "CREATE TABLE part (id int PRIMARY KEY, v int)"


def differing(*ids: int) -> list[RowReport]:
    """Returns rows of which the target lacks all but the key."""
    return [
        RowReport("public.part", {"id": str(one)}, RowDifference.CHANGED, Explanation.NONE, 1, ("v",), ("1",), ("0",))
        for one in ids
    ]


@given(st.integers(0, 2**63 - 1))
def test_a_units_name_tells_the_point_of_its_rows(place: int) -> None:
    assert commit_place_of(PostgresRepairs(ReplicaEnds(None, "", LOG), {}).unit(RUN, place)) == place  # type: ignore[arg-type]
    assert commit_place_of(BinlogRepairs(None, {}).unit(RUN, place)) == place  # type: ignore[arg-type]


def test_a_point_is_shown_as_people_of_that_source_write_it() -> None:
    assert PostgresRepairs(ReplicaEnds(None, "", LOG), {}).shown(0x1_0000_00FF) == "1/FF"  # type: ignore[arg-type]
    assert BinlogRepairs(None, {}).shown(8) == "transaction 7"  # type: ignore[arg-type]


def test_rows_of_postgresql_are_read_at_a_point_behind_which_a_unit_follows(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, PART) as made:
        run(source.url, "INSERT INTO part SELECT n, n * n FROM generate_series(1, 5) n")
        made.catch_up(1)
        ends = ReplicaEnds(source, postgres, LOG)
        repairs = PostgresRepairs(ends, {table.name: table for table in tables_to_compare(ends, ())[0]})
        place, deltas = repairs.read(differing(3, 9))
        assert {(delta.op, delta.key["id"]): dict(delta.row or {}).get("v") for delta in deltas} == {
            ("upsert", 3): 9, ("delete", "9"): None,
        }  # fmt: skip
        run(source.url, "UPDATE part SET v = 0")
        later, _ = repairs.read(differing(3))
        assert later > place
        made.catch_up(3)  # two heartbeats, and the update between them


def test_rows_of_mariadb_are_read_at_a_point_behind_which_a_unit_follows(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)
    with (
        source_database(mariadb_source_server) as url,
        binlog_loading(url, postgres, tmp_path, [PART, "INSERT INTO part VALUES (3, 9)"], [PART]) as world,
    ):
        found = paired_tables_to_compare(world.ends, tables_of(postgres), ()).tables
        repairs = BinlogRepairs(world.ends, {table.name: table for table in found})
        place, deltas = repairs.read(differing(3, 9))
        assert sorted((delta.op, dict(delta.key)["id"]) for delta in deltas) == [("delete", "9"), ("upsert", 3)]
        assert number_now(world.ends) >= place
        world.in_source("UPDATE part SET v = 0")
        later, _ = repairs.read(differing(3))
        assert later > place
