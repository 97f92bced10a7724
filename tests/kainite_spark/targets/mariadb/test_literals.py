"""Two spellings of a key have one token whenever the server takes them for one key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kainite.base.errors import DeltaError, TargetRejectedError
from kainite.targets.mariadb.connection import connect
from kainite.uow.canonical import canonical_of
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite_spark.targets.mariadb.literals import literal, quoted_text

DDL = """CREATE TABLE k (
    general varchar(20) COLLATE utf8mb4_general_ci UNIQUE, nopad varchar(20) COLLATE utf8mb4_general_nopad_ci UNIQUE,
    fixed char(9) COLLATE utf8mb4_general_ci UNIQUE, bin varchar(20) COLLATE utf8mb4_bin UNIQUE,
    three varchar(20) COLLATE utf8mb3_general_ci UNIQUE, swedish varchar(20) COLLATE latin1_swedish_ci UNIQUE,
    latin varchar(20) COLLATE latin1_bin UNIQUE, uca varchar(20) COLLATE utf8mb4_unicode_ci UNIQUE,
    whole int UNIQUE, large bigint unsigned UNIQUE, amount decimal(9, 2) UNIQUE, many decimal(65, 30) UNIQUE,
    b3 binary(3) UNIQUE, vb varbinary(9) UNIQUE, day date UNIQUE, u uuid UNIQUE, flag boolean UNIQUE,
    moment datetime(3) UNIQUE, word enum('a', 'b') UNIQUE)"""
EXACT = ("general", "fixed", "bin", "three", "swedish", "latin", "whole", "amount", "day", "u")

letters = st.sampled_from("aAbBäÄàåÅöØøsSßyüÜ éÉⅠⅰ\ufffd😀😁_-0[]\\'\t\0\u00a0")
texts = st.text(letters, max_size=4) | st.text(st.characters(codec="utf-8"), max_size=2)
numbers = (
    st.integers(-3, 3)
    | st.sampled_from(
        ["5", "05", " 5", "+5", "5.0", "5.004", 5.0, 5.004, 5.005, "5.005", "1e2", 100, "5x", "5_0", True]
    )
    | st.decimals(-9, 9, places=3, allow_nan=False).map(str)
    | st.sampled_from([2**63, 2**63 - 1, 2**64 - 1, str(2**64 - 1), 1e19])
)
binaries = st.sampled_from(["", "a", "\\x61", "\\x6100", "a\0", "\\x610000", "\\xFF", "\\xff", "\\x", "é", "\\xc3a9"])
days = st.sampled_from(["2026-01-31", "20260131", "2026-01-31 10:00:00", "2026-02-30", "0000-00-00", "2026-02-01"])
uuids = st.sampled_from(
    ["6ccd780c-baba-1026-9564-5b8c656024db", "6CCD780CBABA102695645B8C656024DB", "00000000-0000-0000-0000-000000000001"]
)
moments = st.sampled_from(["2026-01-31 10:00:00", "2026-01-31T10:00:00Z", "2026-01-31 12:00:00+02", "2026-01-31 10:00"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("general", "nopad", "fixed", "bin", "three", "swedish", "latin", "uca"), texts | st.just(5)),
    **dict.fromkeys(("whole", "large", "amount", "many"), numbers),
    "b3": binaries, "vb": binaries, "day": days, "u": uuids, "moment": moments,
    "flag": st.sampled_from([True, False, 1, 0, 2, "1"]), "word": st.sampled_from(["a", "b", "A", 1, 2, "1"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def keys(mariadb_server: str) -> Iterator[tuple[pymysql.connections.Connection, dict[str, Column]]]:
    with closing(connect(mariadb_server)) as connection:
        connection.query("CREATE DATABASE literals CHARACTER SET utf8mb4")
        connection.select_db("literals")
        connection.query(DDL)
        connection.begin()
        url = mariadb_server.replace("/mysql?", "/literals?")
        yield connection, dict(reflect(url, []).tables["k"].columns)
        connection.query("DROP DATABASE literals")


def found_by_server(connection: pymysql.connections.Connection, name: str, one: str, other: str) -> bool | None:
    """Returns whether the server takes two literals for one key; None if it refuses one."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO k ({name}) VALUES ({one})")
            found = bool(cursor.execute(f"SELECT 1 FROM k WHERE {name} = {other}"))
            try:
                cursor.execute(f"INSERT INTO k ({name}) VALUES ({other})")
            except pymysql.IntegrityError:
                return True
            assert not found or name == "amount"  # a number that is rounded when it is stored
            return False
    except (pymysql.DataError, pymysql.OperationalError):
        return None
    finally:
        connection.query("DELETE FROM k")


@settings(deadline=None, max_examples=600, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_one_key_to_the_server_has_one_token(
    keys: tuple[pymysql.connections.Connection, dict[str, Column]], data: st.DataObject
) -> None:
    connection, columns = keys
    name = data.draw(st.sampled_from(sorted(VALUES)))
    one, other = (data.draw(VALUES[name]) for _ in range(2))
    column, canonical = columns[name], canonical_of([columns[name]])
    try:
        tokens = canonical(one), canonical(other)
    except DeltaError:  # such a delta becomes no part of a unit
        return
    try:
        same = found_by_server(connection, name, literal(column, one), literal(column, other))
    except TargetRejectedError:
        return
    if same:
        assert tokens[0] == tokens[1]
    elif same is False and name in EXACT and tokens[0] and tokens[1]:
        assert tokens[0] != tokens[1]


def column(kind: str, family: TypeFamily = TypeFamily.OPAQUE, *, nullable: bool = True) -> Column:
    return Column("c", kind, family, nullable)


@pytest.mark.parametrize(
    ("told", "value", "expected"),
    [
        (column("varchar(9)", TypeFamily.TEXT), 5, "'5'"),
        (column("varchar(9)"), True, "'true'"),
        (column("varchar(9)", TypeFamily.TEXT), "a ", "'a '"),
        (column("char(9)", TypeFamily.TEXT), " a  ", "' a'"),
        (column("text"), {"a": 2**70}, "'{\"a\": 1180591620717411303424}'"),
        (column("int(11)", TypeFamily.INTEGER), " 05 ", "5"),
        (column("int(11)", TypeFamily.INTEGER), True, "1"),
        (column("decimal(9,2)", TypeFamily.NUMERIC), "1e2", "100"),
        (column("decimal(9,2)", TypeFamily.NUMERIC), 0.1, "0.1"),
        (column("decimal(9,2)", TypeFamily.NUMERIC), "1e-999999", "0"),
        (column("binary(4)", TypeFamily.BYTES), "\\x6162", "X'61620000'"),
        (column("blob", TypeFamily.BYTES), [1], "X'5b315d'"),
        (column("bit(3)"), "101", "b'101'"),
        (column("timestamp"), "2026-01-31 10:00:00+02", "'2026-01-31 08:00:00'"),
        (column("datetime(6)"), "2026-01-31T10:00:00.5Z", "'2026-01-31 10:00:00.500000'"),
        (column("datetime(6)"), "2026-99-31T10:00:00Z", "'2026-99-31T10:00:00Z'"),
        (column("tinyint(1)"), False, "0"),
        (column("double"), 1.5, "1.5"),
        (column("int(11)"), None, "NULL"),
    ],
)
def test_a_value_is_spelled_by_its_columns_type(told: Column, value: Any, expected: str) -> None:
    assert literal(told, value) == expected


@pytest.mark.parametrize(
    ("told", "value"),
    [
        (column("int(11)", TypeFamily.INTEGER), "5_0"),
        (column("int(11)", TypeFamily.INTEGER), 5.5),
        (column("decimal(9,2)", TypeFamily.NUMERIC), "nan"),
        (column("decimal(9,2)", TypeFamily.NUMERIC), "1_0"),
        (column("decimal(9,2)", TypeFamily.NUMERIC), "1e999999"),
        (column("decimal(9,2)", TypeFamily.NUMERIC), [1]),
        (column("double"), float("inf")),
        (column("bigint(20)", TypeFamily.INTEGER, nullable=False), None),
    ],
)
def test_a_value_that_no_such_column_has_is_refused(told: Column, value: Any) -> None:
    with pytest.raises(TargetRejectedError, match="column c"):
        literal(told, value)


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        quoted_text("\ud800")


def test_quotes_and_backslashes_end_no_text(mariadb_server: str) -> None:
    value = "a'b\\c\"d\\'e\0f\n%s;`-- "
    with closing(connect(mariadb_server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {quoted_text(value)}")
        assert cursor.fetchone() == (value,)
