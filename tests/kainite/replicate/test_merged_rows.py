"""Rows are found that a MariaDB target cannot hold beside others of the source, by each of its collations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import pytest

from kainite.capture.mysql.snapshot_tables import snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.replicate.canonical_texts import TextKind
from kainite.replicate.known_rows import Explanation
from kainite.replicate.merged_rows import merged_rows
from kainite.replicate.paired_rows import MariadbRows, PairedRows
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.verify_report import RowReport
from support.mariadb_source import execute

MISSING, EXTRA, CHANGED = RowDifference.MISSING, RowDifference.EXTRA, RowDifference.CHANGED
NAME: Final = "word"


def paired(url: str, *columns: str, key: str = "w") -> PairedRows:
    """Makes a table in the target, and returns it as it is compared with one of the same columns."""
    execute(url, f"CREATE OR REPLACE TABLE {NAME} ({', '.join(columns)}, PRIMARY KEY ({key}))")
    with closing(MysqlSourceCatalogue(url)) as catalogue:
        [table] = snapshot_tables(catalogue, str(catalogue.value("SELECT database()")), [NAME])
    side, names = MariadbRows(table, ("TRUE",)), tuple(column.name for column in table.columns)
    return PairedRows(NAME, names, table.key, (TextKind.AS_IT_IS,) * len(names), side, side, 1)


def report(how: RowDifference, **key: str) -> RowReport:
    return RowReport(NAME, key, how, Explanation.NONE, 1, (), (), ())


def merged(url: str, table: PairedRows, *rows: RowReport) -> Sequence[tuple[dict[str, str], dict[str, str]]]:
    return [(dict(row.key), dict(row.other)) for row in merged_rows(url, {NAME: table}, rows)]


@pytest.mark.parametrize(
    ("collation", "present", "wanted", "is_merged"),
    [
        ("utf8mb4_bin", "a", "a ", True), ("utf8mb4_bin", "a ", "a", True), ("utf8mb4_bin", "a", "A", False),
        ("utf8mb4_general_ci", "a", "Ä ", True), ("utf8mb4_general_ci", "a", "b", False),
        ("utf8mb4_unicode_ci", "ss", "ß", True), ("utf8mb4_uca1400_ai_ci", "a", "Á  ", True),
        ("utf8mb4_uca1400_nopad_ai_ci", "a", "a ", False), ("utf8mb4_nopad_bin", "a", "a ", False),
        ("latin1_swedish_ci", "y", "Ü", True), ("latin1_swedish_ci", "a", "€", False),
    ],
)  # fmt: skip
def test_a_row_is_one_with_another_by_the_collation_of_its_key(
    mariadb: str, collation: str, present: str, wanted: str, is_merged: bool
) -> None:
    table = paired(mariadb, f"w varchar(9) COLLATE {collation}", "v int")
    execute(mariadb, f"INSERT INTO {NAME} VALUES ('{present}', 1), ('zz', 1)")
    found = [({"w": wanted}, {"w": present})] if is_merged else []
    assert merged(mariadb, table, report(MISSING, w=wanted), report(CHANGED, w="zz")) == found


@pytest.mark.parametrize(("collation", "count"), [("utf8mb4_bin", 2), ("utf8mb4_nopad_bin", 0)])
def test_two_rows_that_the_target_lacks_are_one(mariadb: str, collation: str, count: int) -> None:
    table = paired(mariadb, f"w varchar(9) COLLATE {collation}")
    rows = [report(MISSING, w=text) for text in ("b", "a ", "c", "a")]
    found = [({"w": "a "}, {"w": "a"}), ({"w": "a"}, {"w": "a "})]
    assert merged(mariadb, table, *rows) == found[:count]


def test_a_row_whose_key_is_that_of_one_which_is_deleted_is_repaired(mariadb: str) -> None:
    table = paired(mariadb, "w varchar(9) COLLATE utf8mb4_general_ci")
    execute(mariadb, f"INSERT INTO {NAME} VALUES ('A')")
    assert merged(mariadb, table, report(MISSING, w="a"), report(EXTRA, w="A")) == []
    assert merged(mariadb, table, report(MISSING, w="a")) == [({"w": "a"}, {"w": "A"})]


def test_a_row_that_has_come_into_the_target_meanwhile_is_no_other(mariadb: str) -> None:
    table = paired(mariadb, "w varchar(9) COLLATE utf8mb4_general_ci")
    execute(mariadb, f"INSERT INTO {NAME} VALUES ('a')")
    assert merged(mariadb, table, report(MISSING, w="a")) == []


def test_all_columns_of_a_key_count(mariadb: str) -> None:
    columns = ("id int", "w varchar(9) COLLATE utf8mb4_bin", "`a ``b` time(3)", "e enum('x','y')")
    table = paired(mariadb, *columns, key="w, `a ``b`, e, id")
    execute(mariadb, f"INSERT INTO {NAME} VALUES (1, 'a', '10:00:00.5', 'x')")
    same = {"w": "a ", "a `b": "10:00:00.500", "e": "x", "id": "1"}
    rows = [same, same | {"id": "2"}, same | {"a `b": "11:00:00.500"}, same | {"e": "y"}, same | {"e": "y", "w": "a"}]
    found = merged(mariadb, table, *(report(MISSING, **key) for key in rows))
    assert [key for key, _ in found] == [rows[0], rows[3], rows[4]]
    assert [other for _, other in found] == [same | {"w": "a"}, rows[4], rows[3]]


def test_a_key_without_texts_is_not_looked_for(mariadb: str) -> None:
    table = paired(mariadb, "id int", "w varchar(9) COLLATE utf8mb4_bin", key="id")
    assert merged("mariadb://nobody@127.0.0.1:1/x", table, report(MISSING, id="1")) == []
    assert merged_rows(mariadb, {}, [report(MISSING, id="1")]) == ()
