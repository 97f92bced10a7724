"""Which tables of MariaDB go where, and in which order their ranges are copied."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.capture.mysql.snapshot_tables import SnapshotColumn, SnapshotTable
from kainite.capture.mysql.text_forms import TextSpelling
from kainite.replicate.binlog_plan import check_pairs, copy_steps, paired_tables
from kainite.replicate.ledger import CopyStep
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily


def source(name: str, size: int = 0) -> SnapshotTable:
    columns = (
        SnapshotColumn("id", "int", "int(11)", False, "", ""),
        SnapshotColumn("price", "double", "double", False, "", ""),
        SnapshotColumn("twice", "int", "int(11)", True, "", ""),
    )
    return SnapshotTable(name, columns, ("id",), 10, size)


def target(name: str, *parents: str, columns: tuple[str, ...] = ("id", "price", "twice")) -> Table:
    keys = tuple(ForeignKey(f"{name}_{parent}", ("id",), parent, ("id",)) for parent in parents)
    found = {one: Column(one, "bigint", TypeFamily.INTEGER, generated=one == "twice") for one in columns}
    return Table(name, "public", found, ("id",), foreign_keys=keys)


def catalogue(*tables: Table) -> Catalogue:
    return Catalogue({table.name: table for table in tables}, "public")


def test_parents_come_first_and_each_range_is_a_step() -> None:
    tables = catalogue(target("child", "parent"), target("parent"))
    pairs, missing = paired_tables([source("child", 9), source("parent"), source("other")], tables)
    assert missing == ["other"]
    steps = copy_steps(pairs, tables, lambda _: ["id < 5", "id >= 5"])
    assert [(step.number, step.stage, step.schema, step.table) for step in steps] == [
        (1, 2, "public", "child"), (2, 2, "public", "child"), (3, 1, "public", "parent"), (4, 1, "public", "parent"),
    ]  # fmt: skip
    assert steps[0].work == CopyStep(
        ("SELECT `id` + 0, `price` * 1e0 FROM `child` WHERE id < 5",),
        'COPY "public"."child" ("id", "price") FROM STDIN',
        (TextSpelling.AS_IT_IS, TextSpelling.DOUBLE),
    )


def test_a_table_that_references_itself_is_one_step() -> None:
    tables = catalogue(target("node", "node"))
    pairs, _ = paired_tables([source("node")], tables)
    (step,) = copy_steps(pairs, tables, lambda _: ["id < 5", "id >= 5"])
    assert isinstance(step.work, CopyStep)
    assert len(step.work.queries) == 2


def test_a_cycle_is_refused() -> None:
    tables = catalogue(target("a", "b"), target("b", "a"))
    pairs, _ = paired_tables([source("a"), source("b")], tables)
    with pytest.raises(CatalogueError, match="form a cycle"):
        copy_steps(pairs, tables, lambda _: ["TRUE"])


def test_what_the_target_lacks_or_computes_is_told() -> None:
    here = target("a", columns=("id",))
    computed = Table("b", "public", {**target("b").columns, "price": Column("price", "bigint", TypeFamily.INTEGER,
                     generated=True)}, ("id",))  # fmt: skip
    pairs, missing = paired_tables([source("a"), source("b"), source("c")], catalogue(here, computed))
    with pytest.raises(CatalogueError) as error:
        check_pairs(pairs, missing)
    told = str(error.value)
    assert "no table c; the target's table public.a has no column price; the target computes public.b.price" in told
    check_pairs([], [])
