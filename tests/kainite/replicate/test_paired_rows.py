"""How tables of MariaDB are compared, and what the hashes of their rows tell apart."""

from __future__ import annotations

from dataclasses import replace

from kainite.capture.mysql.snapshot_tables import SnapshotColumn, SnapshotTable
from kainite.replicate.canonical_texts import TextKind, text_kind
from kainite.replicate.mariadb_texts import kind_into_mariadb
from kainite.replicate.page_ranges import PageRange
from kainite.replicate.paired_rows import KeyRange, MariadbRows, PairedRows, PostgresRows, paired_rows
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
    found = paired_rows("public.t", MariadbRows(source, ("TRUE",)), PostgresRows(TARGET), text_kind)
    assert not isinstance(found, str)
    return found


def test_what_is_carried_is_compared() -> None:
    found = paired()
    assert (found.columns, found.key_columns) == (("id", "v%"), ("id",))
    assert found.kinds == (TextKind.AS_IT_IS, TextKind.NUMBER)
    assert (found.bytes, found.buckets) == (12288, 1)
    assert [rows.condition for rows in found.target.ranges()] == ["ctid >= '(0,0)'::tid"]
    assert found.target.query(found.columns, PageRange("public.t", 0, None)) == (
        """COPY (SELECT "id", "v%" FROM ONLY public.t WHERE ctid >= '(0,0)'::tid) TO STDOUT"""
    )
    assert found.source.query(found.columns, KeyRange("t", "id > 5")) == (
        "SELECT `id` + 0, CAST(`v%` AS CHAR) FROM `t` WHERE id > 5"
    )


def test_a_mariadb_target_is_read_in_its_own_database_by_the_names_of_the_source() -> None:
    columns = (ReplicaColumn("id", "int"), ReplicaColumn("b", "boolean"))
    table = replace(TARGET, published_rows="id > 3", columns=columns)
    theirs = replace(SOURCE, schema="public", columns=(*COLUMNS, SnapshotColumn("b", "tinyint", "", True, "", "")))
    shown = PostgresRows(table, {"b": '"b"::int'})
    found = paired_rows("public.t", shown, MariadbRows(theirs, ("a", "b")), kind_into_mariadb)
    assert isinstance(found, PairedRows)
    assert (found.columns, found.kinds) == (("id", "b"), (TextKind.NUMBER, TextKind.NUMBER))
    assert found.source.query(found.columns, PageRange("public.t", 0, None)) == (
        """COPY (SELECT "id", "b"::int FROM ONLY public.t WHERE ctid >= '(0,0)'::tid AND (id > 3)) TO STDOUT"""
    )
    assert [found.target.query(found.columns, one) for one in found.target.ranges()] == [
        "SELECT `id` + 0, `b` + 0 FROM `public`.`t` WHERE a", "SELECT `id` + 0, `b` + 0 FROM `public`.`t` WHERE b",
    ]  # fmt: skip
    assert (found.source.sql, found.target.sql) == (["public.t"], ["`public`.`t`"])


def test_what_the_target_lacks_is_said() -> None:
    source, target = MariadbRows(SOURCE, ("TRUE",)), PostgresRows(replace(TARGET, columns=TARGET.columns[:1]))
    assert paired_rows("public.t", source, None, text_kind) == "the target has no such table"
    assert paired_rows("public.t", source, target, text_kind) == "the target's table has no column id"


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
