"""Columns of PostgreSQL that may not take all values of a column of MariaDB are told."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.snapshot_tables import SnapshotColumn, SnapshotTable
from kainite.replicate.binlog_plan import PairedTable
from kainite.replicate.binlog_types import dates_of, doubts_of
from kainite.uow.catalogue.tables import Column, Table, TypeFamily

FITTING = [
    ("tinyint(1)", "boolean"), ("tinyint(4)", "smallint"), ("mediumint(9)", "integer"), ("int(11)", "bigint"),
    ("int(10) unsigned", "bigint"), ("bigint(20)", "bigint"), ("bigint(20) unsigned", "numeric(20,0)"),
    ("bigint(20) unsigned", "numeric"), ("year(4)", "smallint"), ("decimal(10,2)", "numeric(12,2)"),
    ("decimal(10,2)", "numeric"), ("float", "real"), ("float", "double precision"), ("double", "double precision"),
    ("varchar(20)", "text"), ("varchar(20)", "character varying(20)"), ("enum('a','b')", "text"), ("longtext", "jsonb"),
    ("blob", "bytea"), ("binary(16)", "bytea"), ("date", "date"), ("datetime(6)", "timestamp without time zone"),
    ("timestamp", "timestamp with time zone"), ("time", "interval"), ("bit(7)", "bit(7)"), ("uuid", "uuid"),
    ("inet6", "inet"),
]  # fmt: skip
DOUBTFUL = [
    ("tinyint(4)", "boolean"), ("int(11)", "smallint"), ("int(10) unsigned", "integer"),
    ("bigint(20) unsigned", "bigint"), ("bigint(20)", "numeric(5,0)"), ("decimal(10,2)", "numeric(10,1)"),
    ("decimal(10,2)", "numeric(10,3)"), ("decimal(10,2)", "integer"), ("double", "real"), ("varchar(20)", "jsonb"),
    ("varchar(20)", "character varying(19)"), ("text", "character varying(99)"), ("blob", "text"),
    ("date", "timestamp without time zone"),
    ("datetime", "timestamp with time zone"), ("timestamp", "timestamp without time zone"),
    ("time", "time without time zone"), ("bit(7)", "bit(8)"), ("uuid", "inet"),
]  # fmt: skip


def pair(source: str, target: str) -> PairedTable:
    column = SnapshotColumn("v", source.split("(")[0].split(" ")[0], source, False, "", "")
    table = Table("t", None, {"v": Column("v", target, TypeFamily.OPAQUE)})
    return PairedTable(SnapshotTable("t", (column,), ("v",), 0, 0), table, ("public", "t"))


@pytest.mark.parametrize(("source", "target"), FITTING)
def test_a_type_that_takes_all_values_is_no_doubt(source: str, target: str) -> None:
    assert list(doubts_of(pair(source, target))) == []


@pytest.mark.parametrize(("source", "target"), DOUBTFUL)
def test_a_type_that_may_refuse_or_change_values_is_told(source: str, target: str) -> None:
    (told,) = doubts_of(pair(source, target))
    assert told.startswith(f"public.t.v is {source} in the source and {target} in the target")


def test_dates_are_named() -> None:
    assert dates_of(pair("date", "date")) == ["public.t.v"]
    assert dates_of(pair("time", "interval")) == []
