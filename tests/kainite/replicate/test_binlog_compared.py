"""How tables of MariaDB are compared, and what the hashes of their rows tell apart."""

from __future__ import annotations

from dataclasses import replace

from kainite.capture.mysql.snapshot_tables import SnapshotColumn, SnapshotTable
from kainite.replicate.binlog_compared import PairedRows, paired_rows
from kainite.replicate.canonical_texts import TextKind
from kainite.replicate.page_ranges import PageRange
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart

COLUMNS = (
    SnapshotColumn("id", "int", "int(11)", False, "", ""),
    SnapshotColumn("v%", "decimal", "decimal(9,4)", False, "", ""),
    SnapshotColumn("twice", "int", "int(11)", True, "", ""),
)
SOURCE = SnapshotTable("t", COLUMNS, ("id",), 10, 4096)
TARGET = ReplicaTable(
    "public", "t", "public.t",
    (ReplicaColumn("v%", "numeric"), ReplicaColumn("id", "text"), ReplicaColumn("own", "int")),
    ("id",), "d", 10, (TablePart(1, "public.t", 3, 8192),),
)  # fmt: skip


def paired(source: SnapshotTable = SOURCE) -> PairedRows:
    found = paired_rows("public.t", source, TARGET)
    assert not isinstance(found, str)
    return found


def test_what_is_carried_is_compared() -> None:
    found = paired()
    assert (found.columns, found.key_columns) == (("id", "v%"), ("id",))
    assert found.kinds == (TextKind.AS_IT_IS, TextKind.NUMBER)
    assert (found.bytes, found.buckets) == (12288, 1)
    assert [rows.condition for rows in found.target_ranges(2)] == [
        "ctid >= '(0,0)'::tid AND ctid < '(2,0)'::tid", "ctid >= '(2,0)'::tid",
    ]  # fmt: skip
    assert found.copy_query(PageRange("public.t", 0, None)) == (
        """COPY (SELECT "id", "v%" FROM ONLY public.t WHERE ctid >= '(0,0)'::tid) TO STDOUT"""
    )


def test_what_the_target_lacks_is_said() -> None:
    assert paired_rows("public.t", SOURCE, None) == "the target has no such table"
    assert paired_rows("public.t", SOURCE, replace(TARGET, columns=TARGET.columns[:1])) == (
        "the target's table has no column id"
    )


def test_hashes_tell_places_values_and_nulls_apart() -> None:
    hashed = paired().hashed()
    (one, key, row), size = hashed(["7", "1.5000"])
    assert (key, size) == ('["7"]', len('["7","1.5"]'))
    assert hashed(("7", "1.5"))[0] == (one, key, row)
    others = [hashed(texts)[0] for texts in (["7", None], ["7", "1.6"], ["1.5", "7"], ["7", ""])]
    assert len({row, *(other[2] for other in others)}) == 5
    assert [other[0] == one for other in others] == [True, True, False, True]


def test_without_a_key_that_is_carried_rows_are_known_by_all_of_their_texts() -> None:
    found = paired(replace(SOURCE, key=("twice",)))
    assert found.key_columns == ()
    assert found.hashed()(["7", "1.50"])[0][1] == '["7","1.5"]'
