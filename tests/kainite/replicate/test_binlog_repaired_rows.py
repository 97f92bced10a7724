"""Rows of a MariaDB source are found by the texts of their keys, whatever the key's type, and become deltas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

import pytest

from kainite.base.errors import LogRequestError, SourceError
from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.capture.mysql.snapshot_tables import SnapshotColumn, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.replicate.binlog_repaired_rows import key_literal, read_binlog_deltas
from kainite.replicate.canonical_texts import TextKind, text_kind
from kainite.replicate.known_rows import Explanation
from kainite.replicate.paired_rows import KeyRange, MariadbRows, PairedRows, PostgresRows
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.tables import ReplicaTable
from kainite.replicate.verify_report import RowReport
from kainite.uow.delta import Delta, Operation
from support.mariadb_source import execute, source_database

KEYS: Final = (
    ("INT", "integer", "-5"), ("BIGINT UNSIGNED", "numeric(20,0)", "18446744073709551615"),
    ("YEAR", "smallint", "2024"),
    ("TINYINT(1)", "boolean", "1"), ("DECIMAL(12,4)", "numeric(12,4)", "-1.5"), ("FLOAT", "real", "0.1"),
    ("DOUBLE", "double precision", "0.30000000000000004"), ("DATE", "date", "'2024-02-29'"),
    ("DATETIME(3)", "timestamp without time zone", "'2024-02-29 10:11:12.500'"),
    ("TIMESTAMP(6)", "timestamp with time zone", "'2024-02-29 10:11:12.000001'"), ("TIME(2)", "interval", "'-10:00'"),
    ("VARCHAR(20) COLLATE utf8mb4_general_ci", "text", "'Äb𝄞c'"), ("VARCHAR(20) CHARACTER SET latin1", "text", "'ä€'"),
    ("VARCHAR(20) CHARACTER SET utf8mb3", "text", "'it''s \\\\'"), ("CHAR(9)", "character(9)", "'ab'"),
    ("VARCHAR(36)", "uuid", "'11223344-5566-1788-99AA-BBCCDDEEFF00'"), ("VARBINARY(9)", "bytea", "X'00ff5c'"),
    ("BINARY(4)", "bytea", "X'0001'"), ("UUID", "uuid", "'11223344-5566-1788-99AA-BBCCDDEEFF00'"),
    ("ENUM('a','b')", "text", "'b'"), ("BIT(10)", "bit(10)", "b'1000000001'"), ("INET6", "inet", "'::1'"),
)  # fmt: skip
"""The source's type, the target's, and a value."""


@pytest.fixture(scope="module")
def database(mariadb_source_server: str) -> Iterator[str]:
    with source_database(mariadb_source_server) as url:
        yield url


def paired(url: str, name: str, *targets: str) -> PairedRows:
    """Returns a table of the source as it is compared with one whose columns have these types."""
    with closing(MysqlSourceCatalogue(url)) as catalogue:
        [table] = snapshot_tables(catalogue, str(catalogue.value("SELECT database()")), [name])
    kinds = tuple(text_kind(column.data_type, kind) for column, kind in zip(table.copied, targets, strict=True))
    columns = tuple(column.name for column in table.copied)
    nothing = ReplicaTable("public", name, name, (), (), "d", 0, ())
    return PairedRows(
        f"public.{name}", columns, table.key, kinds, MariadbRows(table, ("TRUE",)), PostgresRows(nothing), 1
    )


def report(table: PairedRows, *key: str) -> RowReport:
    keys = dict(zip(table.key_columns, key, strict=True))
    return RowReport(table.name, keys, RowDifference.CHANGED, Explanation.NONE, 1, (), (), ())


def deltas(url: str, table: PairedRows, *rows: RowReport) -> tuple[Delta, ...]:
    with closing(SnapshotSession(url)) as session:
        session.begin()
        return read_binlog_deltas(session, {table.name: table}, rows)


@pytest.mark.parametrize(("kind", "target", "value"), KEYS)
def test_a_row_is_found_by_its_key_of_each_type(database: str, kind: str, target: str, value: str) -> None:
    execute(database, "DROP TABLE IF EXISTS one", f"CREATE TABLE one (`k%` {kind} PRIMARY KEY, n INT)",
            f"INSERT INTO one VALUES ({value}, 7)")  # fmt: skip
    table = paired(database, "one", target, "integer")
    [[stored, _]] = rows_in(database, table)
    [spelled, _] = table.canonical()([stored, "7"])
    assert spelled is not None
    absent = {"YEAR": "1999", "BIT(10)": "0000000000"}.get(kind, f"{spelled}9")
    found = deltas(database, table, report(table, spelled), report(table, absent))
    assert found[0] == Delta(table.name, Operation.DELETE, {"k%": absent}, {}, {}, 0, may_miss=True)
    assert (found[1].op, found[1].ordinal, found[1].row["n"]) == (Operation.UPSERT, 1, 7)
    assert str(found[1].row["k%"]) == stored
    assert found[1].key == {"k%": found[1].row["k%"]}


def rows_in(url: str, table: PairedRows) -> list[list[str | None]]:
    with closing(SnapshotSession(url)) as session:
        session.begin()
        source = table.source
        assert isinstance(source, MariadbRows)
        query = source.query(table.columns, KeyRange(table.name, "TRUE"))
        return [list(row) for row in session.rows(query, source.spellings(table.columns))]


def test_many_keys_of_several_columns_are_found_and_what_a_collation_takes_for_equal_is_not(database: str) -> None:
    execute(database, "DROP TABLE IF EXISTS word", "CREATE TABLE word (w VARCHAR(20) COLLATE utf8mb4_general_ci, n INT,"
            " raw BLOB, at DATETIME(2), made INT AS (n + 1), PRIMARY KEY (w, n))",
            "INSERT INTO word (w, n, raw, at) SELECT CONCAT('Word', seq), seq, NULL, '2024-01-01'"
            " FROM seq_1_to_900")  # fmt: skip
    table = paired(database, "word", "text", "integer", "bytea", "timestamp without time zone")
    wanted = [report(table, f"Word{n}", str(n)) for n in range(1, 901, 2)]
    found = deltas(database, table, report(table, "word3", "3"), *wanted)
    assert [delta.op for delta in found] == [Operation.DELETE, *[Operation.UPSERT] * 450]
    assert found[1].row == {"w": "Word1", "n": 1, "raw": None, "at": "2024-01-01 00:00:00.00"}
    assert {delta.key["n"] for delta in found[1:]} == set(range(1, 901, 2))


def test_rows_that_the_target_cannot_tell_apart_are_refused(database: str) -> None:
    execute(database, "DROP TABLE IF EXISTS flag", "CREATE TABLE flag (f TINYINT(1) PRIMARY KEY)",
            "INSERT INTO flag VALUES (1), (2), (0)")  # fmt: skip
    table = paired(database, "flag", "boolean")
    one = table.canonical()(["1"])[0] or ""
    if table.canonical()(["2"])[0] == one:
        with pytest.raises(LogRequestError, match="several rows of the source have the key"):
            deltas(database, table, report(table, one))
    assert deltas(database, table, report(table, table.canonical()(["0"])[0] or ""))[0].row == {"f": 0}
    document = replace(table, kinds=(TextKind.DOCUMENT,))
    with pytest.raises(LogRequestError, match="rows whose key has a document"):
        deltas(database, document, report(table, "1"))


def test_a_table_that_is_gone_is_told(database: str) -> None:
    execute(database, "DROP TABLE IF EXISTS gone", "CREATE TABLE gone (id INT PRIMARY KEY)")
    table = paired(database, "gone", "integer")
    execute(database, "DROP TABLE gone")
    with pytest.raises(SourceError, match="start the repair again"):
        deltas(database, table, report(table, "1"))


@pytest.mark.parametrize(
    ("data_type", "charset", "kind", "text"),
    [
        ("int", "", TextKind.BOOLEAN, "t"), ("decimal", "", TextKind.NUMBER, "1e5"),
        ("float", "", TextKind.SINGLE, "1.5"),
        ("int", "", TextKind.NUMBER, "9" * 80), ("date", "", TextKind.DAY, "0000-00-00"),
        ("varchar", "latin1", TextKind.AS_IT_IS, "ä"), ("char", "utf8mb4", TextKind.PADDED, "a"),
        ("varchar", "utf8mb4", TextKind.UUID, "a"), ("varbinary", "", TextKind.AS_IT_IS, "00"),
        ("datetime", "", TextKind.MOMENT, "infinity"), ("enum", "utf8mb4", TextKind.AS_IT_IS, "a"),
    ],
)  # fmt: skip
def test_of_other_texts_no_condition_is_sure(data_type: str, charset: str, kind: TextKind, text: str) -> None:
    column = SnapshotColumn("k", data_type, data_type, made=False, charset=charset, collation="")
    assert key_literal(column, kind, text) is None
