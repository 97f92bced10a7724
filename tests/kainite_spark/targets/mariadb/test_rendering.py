from __future__ import annotations

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import Column, ReferentialAction, Table, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.mariadb import rendering
from kainite_spark.targets.mariadb.rendering import change, inserts, quoted, releases, table_name
from kainite_spark.targets.statements.planner import StatementShape
from support.tables import acting

INT = TypeFamily.INTEGER
TREE = Table(
    "tree",
    "shop",
    {name: Column(name, "int(11)", INT, nullable=name != "id") for name in ("id", "up", "v")},
    ("id",),
    foreign_keys=(acting("up", "tree", ReferentialAction.NO_ACTION),),
)  # fmt: skip
KEY = ("id",)


def test_names_are_quoted_whatever_is_in_them() -> None:
    assert quoted("a`b") == "`a``b`"
    assert table_name(Table("other.odd", "other", {})) == "`other`.`odd`"


def test_rows_of_an_insert_share_statements_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MOST_CHARACTERS", 20)
    rows = [Delta("tree", Operation.INSERT, {"id": n}, {"id": n, "v": 1}, {}) for n in range(5)]
    made = list(inserts(StatementShape("tree", Operation.INSERT, ("id", "v"), ()), TREE, rows))
    assert made[0][0] == "INSERT INTO `shop`.`tree` (`id`, `v`) VALUES (0, 1), (1, 1), (2, 1)"
    assert [len(deltas) for _, deltas in made] == [3, 2]


@pytest.mark.parametrize(
    ("shape", "delta", "sql"),
    [
        (
            StatementShape("tree", Operation.DELETE, (), KEY),
            Delta("tree", Operation.DELETE, {"id": 1}, {}, {}),
            "DELETE FROM `shop`.`tree` WHERE `id` = 1",
        ),
        (
            StatementShape("tree", Operation.UPDATE, ("id", "v"), KEY, moves=True, reached=True),
            Delta("tree", Operation.UPDATE, {"id": 1}, {"id": 2, "v": None}, {}),
            "UPDATE `shop`.`tree` SET `id` = 2, `v` = NULL WHERE (`id` = 1) OR (`id` = 2)",
        ),
        (
            StatementShape("tree", Operation.UPSERT, ("id", "v"), KEY),
            Delta("tree", Operation.UPSERT, {"id": 1}, {"id": 1, "v": 3}, {}),
            "UPDATE `shop`.`tree` SET `v` = 3 WHERE `id` = 1",
        ),
        (
            StatementShape("tree", Operation.UPSERT, ("id",), KEY),
            Delta("tree", Operation.UPSERT, {"id": 1}, {"id": 1}, {}),
            "UPDATE `shop`.`tree` SET `id` = 1 WHERE `id` = 1",
        ),
    ],
)
def test_a_row_is_changed_by_its_key(shape: StatementShape, delta: Delta, sql: str) -> None:
    assert change(shape, TREE, delta) == sql


@pytest.mark.parametrize(
    ("shape", "released"),
    [
        (StatementShape("tree", Operation.DELETE, (), KEY), True),
        (StatementShape("tree", Operation.UPDATE, ("id", "up"), KEY, moves=True), True),
        (StatementShape("tree", Operation.UPDATE, ("id",), KEY, moves=True), False),
        (StatementShape("tree", Operation.UPDATE, ("up", "v"), KEY), False),
    ],
)
def test_a_row_that_names_itself_is_released_before_it_goes(shape: StatementShape, released: bool) -> None:
    made = list(releases(shape, TREE, Delta("tree", shape.op, {"id": 1}, {}, {})))
    assert made == ["UPDATE `shop`.`tree` SET `up` = NULL WHERE `id` = 1 AND `up` = `id`"] * released


def test_a_value_that_does_not_fit_names_its_table() -> None:
    with pytest.raises(TargetRejectedError, match="tree: column v: 'x' is no whole number"):
        change(
            StatementShape("tree", Operation.UPDATE, ("v",), KEY),
            TREE,
            Delta("tree", Operation.UPDATE, {"id": 1}, {"v": "x"}, {}),
        )
