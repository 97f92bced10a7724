"""The order of a load."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.replicate.plan import family_graph, load_steps, quoted, stages_of
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart
from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table


def catalogue(*tables: Table) -> Catalogue:
    return Catalogue({table.name: table for table in tables}, "public")


def table(name: str, *parents: str, part_of: str | None = None) -> Table:
    keys = tuple(ForeignKey(f"to {parent}", ("a",), parent, ("b",)) for parent in parents)
    return Table(name, "public", {}, foreign_keys=keys, part_of=part_of)


def replicated(name: str, *pages: int, rows: str | None = None) -> ReplicaTable:
    columns = (ReplicaColumn("id", "integer"), ReplicaColumn("g", "integer", generated=True))
    parts = tuple(TablePart(n, f"public.{name}_{n}", size, size) for n, size in enumerate(pages))
    return ReplicaTable("public", name, f"public.{name}", columns, ("id",), "d", 0, parts, None, rows)


def test_parents_come_first_and_partitions_count_as_their_whole() -> None:
    stages = stages_of(
        catalogue(table("whole"), table("leaf", part_of="whole"), table("child", "whole"), table("own", "own", "child"))
    )
    levels = {name: stages.level(("public", name)) for name in ("whole", "leaf", "child", "own", "unknown")}
    assert levels == {"whole": 1, "leaf": 1, "child": 2, "own": 3, "unknown": 1}
    assert [stages.refers_to_itself(("public", name)) for name in ("own", "child", "unknown")] == [True, False, False]


def test_a_cycle_is_spelled_out_deferrable_or_not() -> None:
    with pytest.raises(CatalogueError, match=r"cycle \(a, b\)"):
        stages_of(catalogue(table("a", "b"), table("b", "a")))


def test_a_parent_outside_of_the_catalogue_is_part_of_the_graph() -> None:
    graph = family_graph(catalogue(table("a", "elsewhere.b")))
    assert graph.tables == ("a", "elsewhere.b")
    assert len(graph.references) == 1


def test_each_part_is_cut_and_generated_columns_are_left_out() -> None:
    steps = load_steps([replicated("small", 1), replicated("large", 3000, 10, rows="(id > 5)")], catalogue(), 2)
    assert [step.number for step in steps] == [1, 2, 3, 4, 5]
    assert [step.table for step in steps] == ["large"] * 4 + ["small"]
    first = steps[0].work
    assert first.into == 'COPY public.large ("id") FROM STDIN'  # type: ignore[union-attr]
    assert first.queries == (  # type: ignore[union-attr]
        """COPY (SELECT "id" FROM ONLY public.large_0 WHERE ctid >= '(0,0)'::tid AND ctid < '(1024,0)'::tid"""
        " AND ((id > 5))) TO STDOUT",
    )


def test_a_table_that_references_itself_is_one_step() -> None:
    steps = load_steps([replicated("own", 3000, 3000)], catalogue(table("own", "own")), 2)
    assert [len(step.work.queries) for step in steps] == [6]  # type: ignore[union-attr]


def test_names_are_quoted() -> None:
    assert quoted(ReplicaColumn('a"b', "text")) == '"a""b"'
