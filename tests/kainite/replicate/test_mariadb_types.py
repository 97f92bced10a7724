"""Which type of MariaDB takes a type of PostgreSQL's values, and the statements that make tables."""

from __future__ import annotations

import pytest

from kainite.replicate.mariadb_types import SourceForeignKey, mariadb_type, written_table
from kainite.replicate.tables import ReplicaColumn

TEXT = "COLLATE utf8mb4_nopad_bin"


@pytest.mark.parametrize(
    ("kind", "plain", "keyed"),
    [
        ("integer", "INT", "INT"),
        ("numeric(12,3)", "DECIMAL(12,3)", "DECIMAL(12,3)"),
        ("numeric", None, None),
        ("numeric(70,3)", None, None),
        ("numeric(5,-2)", None, None),
        ("double precision", "DOUBLE", "DOUBLE"),
        ("text", f"LONGTEXT {TEXT}", f"VARCHAR(255) {TEXT}"),
        ("character varying(40)", f"VARCHAR(40) {TEXT}", f"VARCHAR(40) {TEXT}"),
        ("character varying(1000)", f"VARCHAR(1000) {TEXT}", f"VARCHAR(255) {TEXT}"),
        ("character(5)", f"CHAR(5) {TEXT}", f"CHAR(5) {TEXT}"),
        ("bytea", "LONGBLOB", "VARBINARY(255)"),
        ("timestamp(3) with time zone", "DATETIME(3)", "DATETIME(3)"),
        ("timestamp without time zone", "DATETIME(6)", "DATETIME(6)"),
        ("time(0) without time zone", "TIME(0)", "TIME(0)"),
        ("jsonb", "JSON", "JSON"),
        ("bit(5)", "BIT(5)", "BIT(5)"),
        ("bit(65)", None, None),
        ("interval", None, None),
        ("integer[]", None, None),
        ('public."Mood"', None, None),
    ],
)
def test_a_type_is_there_only_where_it_takes_each_value(kind: str, plain: str | None, keyed: str | None) -> None:
    assert (mariadb_type(kind, keyed=False), mariadb_type(kind, keyed=True)) == (plain, keyed)


def test_a_table_comes_with_its_keys_and_says_what_is_open() -> None:
    columns = [
        ReplicaColumn("id", "bigint", not_null=True), ReplicaColumn("na`me", "text"), ReplicaColumn("at", "interval"),
        ReplicaColumn("boss", "bigint"),
    ]  # fmt: skip
    boss = SourceForeignKey("above", ("boss",), ("shop", "item"), ("id",), "ON DELETE CASCADE")
    made = written_table(("shop", "item"), columns, ["id"], [["na`me"]], [boss])
    assert made.sql == (
        f"CREATE TABLE `shop`.`item` (`id` BIGINT NOT NULL, `na``me` VARCHAR(255) {TEXT} NULL, `at` … NULL,"
        " `boss` BIGINT NULL, PRIMARY KEY (`id`), UNIQUE KEY (`na``me`), CONSTRAINT `above` FOREIGN KEY (`boss`)"
        f" REFERENCES `shop`.`item` (`id`) ON DELETE CASCADE) ENGINE = InnoDB CHARACTER SET utf8mb4 {TEXT}"
    )
    assert made.open == ("at (interval)",)
    assert made.short == ("na`me (VARCHAR(255))",)
