"""Units that empty tables: the statements, the way from a source's TRUNCATE to its target, and what refuses them."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import TargetRejectedError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.truncate import OnTruncate
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.exec.delta_order import DeltaOrder
from kainite_spark.targets.statements.emptied_tables import EmptyingPlanner
from kainite_spark.targets.statements.planner import Planner
from support.postgresql_source import source
from support.replica import replica
from support.tables import INTEGER, catalogue, columns, foreign_key, table

__all__ = ["source"]

CATALOGUE = catalogue(
    table("p", columns(id=INTEGER), ("id",)),
    table("c", columns(id=INTEGER, p=INTEGER), ("id",), foreign_key(("p",), "p", ("id",))),
)
LEVELS = {"p": 1, "c": 2}


def emptied(name: str, ordinal: int | None) -> Delta:
    return Delta(name, Operation.TRUNCATE, {}, {}, {}, ordinal)


def inserted(name: str, id: int, ordinal: int | None) -> Delta:
    return Delta(name, Operation.INSERT, {"id": id}, {"id": id}, {}, ordinal)


def planned(*deltas: Delta) -> list[str]:
    planner = EmptyingPlanner(Planner(CATALOGUE, LEVELS), CATALOGUE, LEVELS)
    unit = Unit(1, "T-1", deltas)
    ways = [planner.plan([unit], folded=True), planner.one_by_one(unit), planner.in_runs(unit)]
    one, *others = [[f"{each.shape.op} {each.shape.table} {len(each.deltas)}" for each in way] for way in ways]
    assert all(other == one for other in others)
    assert not planner.has_runs(unit)
    return one


def test_what_stands_around_an_emptied_table_keeps_its_place_and_children_come_first() -> None:
    deltas = inserted("c", 1, 0), emptied("p", 1), emptied("c", 2), inserted("p", 1, 3), emptied("p", 4)
    assert planned(*deltas) == ["insert c 1", "truncate c 1", "truncate p 1", "insert p 1", "truncate p 1"]


def test_a_unit_whose_order_is_not_known_is_refused() -> None:
    with pytest.raises(TargetRejectedError, match="needs 'ordinal'"):
        planned(inserted("c", 1, None), emptied("c", None))
    with pytest.raises(TargetRejectedError, match="has no table x"):
        planned(emptied("x", 0))


def test_other_targets_refuse_it() -> None:
    unit = Unit(1, "T-1", (emptied("p", 0),))
    order = DeltaOrder(None, {})
    for refusing in (
        lambda: list(Planner(CATALOGUE, LEVELS).plan([unit])),
        lambda: list(Planner(CATALOGUE, LEVELS).one_by_one(unit)),
        lambda: order.by_precedence(unit),
        lambda: order.by_source(unit),
    ):
        with pytest.raises(TargetRejectedError, match="TRUNCATE of p: only PostgreSQL and MariaDB targets"):
            refusing()


TABLES = """
    CREATE TABLE parent (id int PRIMARY KEY, n int);
    CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent, self int REFERENCES child);
    CREATE TABLE other (id int PRIMARY KEY);
    INSERT INTO parent VALUES (1, 1), (2, 2);
    INSERT INTO child VALUES (1, 1, NULL), (2, 2, 1);
    INSERT INTO other VALUES (1);
"""


def test_a_truncate_of_the_source_empties_the_targets_tables_in_its_place(source: SourceSlot, postgres: str) -> None:
    """Truncates several tables with foreign keys, in the middle of transactions, among units on the same rows."""
    with replica(source, postgres, TABLES, on_truncate=OnTruncate.APPLY) as made:
        with psycopg.connect(source.url, autocommit=True) as connection:
            run = connection.execute
            run("UPDATE parent SET n = 7 WHERE id = 1")
            with connection.transaction():
                run("INSERT INTO parent VALUES (3, 3); INSERT INTO child VALUES (3, 3, 3)")
                run("TRUNCATE parent, child RESTART IDENTITY")
                run("INSERT INTO parent VALUES (1, 10); INSERT INTO child VALUES (1, 1, 1)")
            run("UPDATE parent SET n = 11 WHERE id = 1")
            run("TRUNCATE parent CASCADE")
            run("INSERT INTO parent VALUES (1, 12), (9, 9)")
            run("TRUNCATE other")
        made.catch_up(6)
        assert made.failed() == {}
        for name in ("parent", "child", "other"):
            rows, copies = made.values(name)
            assert rows == copies, name


def test_a_truncate_that_the_target_refuses_fails_its_unit_and_holds_back_what_follows_on_its_tables(
    source: SourceSlot, postgres: str
) -> None:
    own = ("CREATE TABLE own (id int REFERENCES parent)", "INSERT INTO own VALUES (1)")
    with replica(source, postgres, TABLES, at_target=own, on_truncate=OnTruncate.APPLY) as made:
        with psycopg.connect(source.url, autocommit=True) as connection:
            connection.execute("TRUNCATE parent, child")
            connection.execute("INSERT INTO child VALUES (7, NULL, NULL)")
            connection.execute("INSERT INTO other VALUES (2)")
        made.catch_up(3)
        [failed, blocked] = made.failed().values()
        assert failed.startswith("failed: ")
        assert "own_id_fkey" in failed
        assert blocked.startswith("blocked")
        assert made.values("other")[1] == ["(1)", "(2)"]
        assert len(made.values("child")[1]) == 2
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DROP TABLE own")


def test_a_reader_with_an_older_snapshot_sees_the_rows(source: SourceSlot, postgres: str) -> None:
    with (
        replica(source, postgres, TABLES, on_truncate=OnTruncate.APPLY) as made,
        psycopg.connect(postgres) as reader,
    ):
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT FROM other")
        with psycopg.connect(source.url, autocommit=True) as connection:
            connection.execute("TRUNCATE parent, child")
        made.catch_up(1)
        assert reader.execute("SELECT count(*) FROM parent").fetchone() == (2,)
        assert made.values("parent") == ([], [])
