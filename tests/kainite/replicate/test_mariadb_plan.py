"""Which ranges are copied into MariaDB, and what is looked at behind them."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.capture.mysql.snapshot_tables import SnapshotColumn, SnapshotTable
from kainite.capture.mysql.text_forms import TextSpelling
from kainite.replicate.binlog_plan import PairedTable
from kainite.replicate.ledger import CheckStep, CopyStep
from kainite.replicate.mariadb_ledger import CHECK_STAGE
from kainite.replicate.mariadb_plan import (
    check_mariadb_pairs,
    mariadb_pairs,
    steps_from_mariadb,
    steps_from_postgresql,
)
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart
from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily


def source(name: str, pages: int) -> ReplicaTable:
    columns = (
        ReplicaColumn("id", "bigint"), ReplicaColumn("on", "boolean"), ReplicaColumn("name", "text"),
        ReplicaColumn("made", "text", generated=True),
    )  # fmt: skip
    part = TablePart(7, f"public.{name}", pages, pages * 8192)
    return ReplicaTable("public", name, f"public.{name}", columns, ("id",), "d", 10, (part,))


def target(*names: str, lacking: str = "", made: str = "") -> Catalogue:
    columns = {
        name: Column(name, "int", TypeFamily.INTEGER, generated=name == made)
        for name in ("id", "on", "name")
        if name != lacking
    }
    return Catalogue({name: Table(name, "public", columns, ("id",)) for name in names}, "public")


def test_ranges_have_no_order_and_each_table_is_looked_at_behind_all_of_them() -> None:
    pairs, missing = mariadb_pairs([source("small", 1), source("large", 5000)], target("small", "large"))
    assert missing == []
    check_mariadb_pairs(pairs, missing)
    *copies, one, other = steps_from_postgresql(pairs, 1)
    assert [(step.stage, step.table) for step in copies] == [(1, "large")] * 4 + [(1, "small")]
    assert [step.number for step in (*copies, one, other)] == list(range(1, 8))
    assert {(step.schema, step.table, step.stage) for step in (one, other)} == {
        ("public", "small", CHECK_STAGE), ("public", "large", CHECK_STAGE),
    }  # fmt: skip
    assert {one.work, other.work} == {CheckStep()}
    work = copies[-1].work
    assert isinstance(work, CopyStep)
    assert work.types == {"id": 20, "on": 16, "name": 25}
    assert work.queries == (
        'COPY (SELECT "id", "on", "name" FROM ONLY public.small WHERE ctid >= \'(0,0)\'::tid) TO STDOUT',
    )


@pytest.mark.parametrize(
    ("there", "cause"),
    [
        (target("other"), "the target has no table public.item"),
        (target("item", lacking="on"), "the target's table public.item has no column on"),
        (target("item", made="on"), "the target computes public.item.on, and the source has values for it"),
    ],
)
def test_what_cannot_be_copied_is_refused(there: Catalogue, cause: str) -> None:
    with pytest.raises(CatalogueError, match=cause):
        check_mariadb_pairs(*mariadb_pairs([source("item", 1)], there))


def test_ranges_of_a_mariadb_source_have_its_spellings() -> None:
    columns = (
        SnapshotColumn("id", "int", "int(11)", False, "", ""),
        SnapshotColumn("raw", "blob", "blob", False, "", ""),
        SnapshotColumn("made", "int", "int(11)", True, "", ""),
    )
    table = SnapshotTable("item", columns, ("id",), 10, 1000)
    pair = PairedTable(table, target("item").tables["item"], ("shop", "item"))
    copy, more, check = steps_from_mariadb([pair], lambda _: ["id < 5", "id >= 5"])
    assert isinstance(copy.work, CopyStep)
    assert copy.work.types == {"id": 20, "raw": 25}
    assert copy.work.spellings == (TextSpelling.AS_IT_IS, TextSpelling.BYTES)
    assert copy.work.queries == ("SELECT `id` + 0, `raw` FROM `item` WHERE id < 5",)
    assert (more.stage, check.stage) == (1, CHECK_STAGE)
