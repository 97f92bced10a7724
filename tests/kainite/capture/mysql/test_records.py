"""Changed rows become records of the stream."""

from __future__ import annotations

from dataclasses import replace

from kainite.capture.mysql.records import MAX_CHANGE, SourceTable, change_record, oid_of
from kainite.capture.mysql.rows import MISSING, ChangedRow, RowOperation
from kainite.capture.mysql.table_map import MappedColumn, Type

UNIT = {"uow": "my-1", "number": 1}
TABLE = SourceTable("t", ("id", "mail", "made"), (20, 25, 20), (), (0, 1), (0,), (1,))


def row(table: SourceTable, changed: ChangedRow | str) -> dict[str, object]:
    operation = RowOperation.INSERT if isinstance(changed, str) else changed.operation
    place, said = change_record(UNIT, 3, table, operation, changed)
    assert place == {**UNIT, "ordinal": 3, "relation": "t", "operation": operation}
    return said


def test_an_update_has_its_old_key_all_new_values_and_old_ones_of_indexes() -> None:
    update = ChangedRow(RowOperation.UPDATE, ("1", "a", "2"), ("5", "b", "6"))
    assert row(TABLE, update) == {
        "types": {"id": 20, "mail": 25}, "key": {"id": "1"}, "new": {"id": "5", "mail": "b"}, "old": {"mail": "a"},
    }  # fmt: skip


def test_an_image_that_lacks_columns_is_refused() -> None:
    """Shows it: without old values of indexes units could be reordered, and what is left out the target may change."""
    lacking = (
        ChangedRow(RowOperation.UPDATE, ("1", MISSING, MISSING), (MISSING, "b", MISSING)),
        ChangedRow(RowOperation.UPDATE, ("1", "a", "2"), ("1", MISSING, "2")),
        ChangedRow(RowOperation.UPDATE, ("1", MISSING, "2"), ("1", "a", "2")),
        ChangedRow(RowOperation.INSERT, None, ("1", MISSING, MISSING)),
        ChangedRow(RowOperation.DELETE, ("1", MISSING, MISSING), None),
        ChangedRow(RowOperation.DELETE, (MISSING, "a", "2"), None),
    )
    assert all("binlog_row_image" in str(row(TABLE, changed)) for changed in lacking)


def test_what_cannot_be_carried_says_why() -> None:
    assert row(replace(TABLE), "a reason") == {"refused": "a reason"}
    large = ChangedRow(RowOperation.INSERT, None, ("1", "x" * (MAX_CHANGE + 1), None))
    assert row(TABLE, large) == {"refused": "the change has more than 64 MiB"}


def test_types_are_named_by_what_postgresql_spells_alike() -> None:
    assert oid_of(MappedColumn(Type.BLOB)) == 17
    assert oid_of(MappedColumn(Type.BLOB, collation=45)) == 25
    assert oid_of(MappedColumn(Type.YEAR)) == 20
    assert oid_of(MappedColumn(Type.SET)) == 25
