"""The deltas that share a statement, and the order of the statements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import msgspec
import pytest

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, Table, TypeFamily, UniqueKey
from kainite.uow.delta import Delta, Operation, Row
from kainite.uow.signature import Signatures
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.planner import FOLDED_LAYERS, Planner, Statement

LEVELS = {"root": 1, "tree": 2, "leaf": 3}


def table(name: str, columns: str, unique: str = "", **parents: str) -> Table:
    """Returns a table with ``id`` as its key; a parent is given by its column."""
    return Table(
        name,
        None,
        {column: Column(column, "bigint", TypeFamily.INTEGER) for column in columns.split()},
        ("id",),
        (UniqueKey("u", (unique,)),) if unique else (),
        tuple(ForeignKey(f"{name}_{column}", (column,), parent, ("id",)) for column, parent in parents.items()),
    )


CATALOGUE = Catalogue(
    {
        "root": table("root", "id code v", unique="code"),
        "tree": table("tree", "id up root_id v", up="tree", root_id="root"),
        "leaf": table("leaf", "id tree_id v", tree_id="tree"),
    }
)


def delta(op: str, name: str, number: int, before: Row | None = None, **row: object) -> Delta:
    written = {"id": number, **row} if op in ("insert", "upsert") else row
    return Delta(name, Operation(op), {"id": number}, written, before or {})


def plan(*units: Iterable[Delta], conflicting: bool = False) -> list[str]:
    """Returns the statements as words: operation, table, ids."""
    written = frozenset({1}) if conflicting else frozenset[int]()
    listed = [Unit(tid, f"T-{tid}", tuple(deltas), written) for tid, deltas in enumerate(units)]
    return [_words(statement) for statement in Planner(CATALOGUE, LEVELS).plan(listed)]


def _words(statement: Statement) -> str:
    numbers = ",".join(str(delta.key["id"]) for delta in statement.deltas)
    return f"{statement.shape.op} {statement.shape.table} {numbers}"


def test_inserts_go_down_the_precedence_and_deletes_up() -> None:
    deltas = [
        delta("delete", "root", 1), delta("delete", "leaf", 1), delta("update", "leaf", 2, v=1),
        delta("delete", "tree", 1), delta("insert", "leaf", 3), delta("upsert", "root", 3), delta("insert", "tree", 3),
    ]  # fmt: skip
    assert plan(deltas) == [
        "upsert root 3", "insert tree 3", "insert leaf 3", "update leaf 2",
        "delete leaf 1", "delete tree 1", "delete root 1",
    ]  # fmt: skip


def test_units_of_a_layer_share_statements_and_conflicting_ones_do_not() -> None:
    units = [[delta("insert", "root", 1)], [delta("insert", "root", 2)]]
    assert plan(*units) == ["insert root 1,2"]
    assert plan(*units, conflicting=True) == ["insert root 1", "insert root 2"]


def test_a_statement_writes_the_same_columns_in_every_row() -> None:
    deltas = [
        delta("update", "root", 1, v=1), delta("update", "root", 2, v=1, code=2),
        delta("update", "root", 3, code=3, v=1), delta("update", "root", 4, v=1, id=4),
    ]  # fmt: skip
    assert plan(deltas) == ["update root 1,4", "update root 2,3"]


def test_a_row_touched_again_goes_to_a_later_step() -> None:
    first = [delta("insert", "root", 1), delta("update", "root", 1, v=1), delta("delete", "root", 1)]
    second = [delta("insert", "root", 2), delta("update", "root", 2, v=2)]
    assert plan(first, second) == ["insert root 1,2", "update root 1,2", "delete root 1"]


def test_a_changed_key_is_the_same_row() -> None:
    deltas = [delta("update", "root", 1, id=2), delta("update", "root", 2, v=1), delta("insert", "root", 1)]
    assert plan(deltas) == ["update root 1", "insert root 1", "update root 2"]


def test_a_unique_value_changes_hands_in_the_source_s_order() -> None:
    deltas = [delta("delete", "root", 1, {"code": 7}), delta("insert", "root", 2, code=7)]
    assert plan(deltas) == ["delete root 1", "insert root 2"]
    numbered = [msgspec.structs.replace(each, ordinal=place) for place, each in enumerate(deltas[::-1])]
    assert plan(numbered) == ["insert root 2", "delete root 1"]
    assert plan(deltas[::-1]) == ["delete root 1", "insert root 2"]


def test_a_null_in_a_unique_key_is_nobody_s() -> None:
    assert plan([delta("insert", "root", 1, code=None), delta("insert", "root", 2, code=None)]) == ["insert root 1,2"]


def test_a_new_child_does_not_come_before_its_parent_is_back() -> None:
    deltas = [delta("delete", "root", 1), delta("insert", "root", 1), delta("insert", "tree", 5, root_id=1)]
    assert plan(deltas) == ["delete root 1", "insert root 1", "insert tree 5"]


def test_a_delete_waits_for_children_that_take_two_steps() -> None:
    deltas = [delta("update", "tree", 5, v=1), delta("delete", "tree", 5), delta("delete", "root", 1)]
    assert plan(deltas) == ["update tree 5", "delete tree 5", "delete root 1"]


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])))
def test_rows_of_a_table_that_references_itself_stand_parents_first(order: tuple[int, ...]) -> None:
    born = [delta("insert", "tree", number, up=number - 1 or None) for number in order]
    gone = [delta("delete", "tree", number, {"up": number - 1 or None}) for number in order]
    assert plan(born) == ["insert tree 1,2,3"]
    assert plan(gone) == ["delete tree 3,2,1"]


@pytest.mark.parametrize("order", list(permutations([1, 2, 3, 4])))
def test_rows_in_partitions_of_a_table_that_references_itself_stand_parents_first(order: tuple[int, ...]) -> None:
    tree = table("tree", "id up", up="tree")
    parts = {name: replace(tree, name=name, part_of="tree") for name in ("odd", "even")}
    made = Planner(Catalogue({"tree": tree, **parts}), dict.fromkeys(("tree", *parts), 1))
    name = ("even", "odd")
    born = tuple(delta("insert", name[n % 2], n, up=n // 2 or None) for n in order)
    gone = tuple(delta("delete", name[n % 2], n, {"up": n // 2 or None}) for n in order)
    for deltas, parents_first in ((born, True), (gone, False)):
        done = [each.key["id"] for part in made.plan([Unit(1, "T-1", deltas)]) for each in part.deltas]
        places = {number: place for place, number in enumerate(done)}
        assert all((places[n // 2] < places[n]) is parents_first for n in (2, 3, 4)), done
    numbered = tuple(msgspec.structs.replace(each, ordinal=place) for place, each in enumerate(gone))
    [run] = made.in_runs(Unit(1, "T-1", numbered))
    assert (run.shape.table, run.shape.op, len(run.deltas)) == ("tree", Operation.DELETE, 4)


def test_rows_of_different_columns_are_cut_by_generation() -> None:
    deltas = [
        delta("insert", "tree", 3, up=2),
        delta("insert", "tree", 2, up=1, v=5),
        delta("insert", "tree", 1, up=None),
    ]
    assert plan(deltas) == ["insert tree 1", "insert tree 2", "insert tree 3"]


def test_rows_that_reference_each_other_in_a_circle_stay_as_they_came() -> None:
    assert plan([delta("insert", "tree", 2, up=1), delta("insert", "tree", 1, up=2)]) == ["insert tree 2,1"]


def test_long_statements_are_cut() -> None:
    statements = plan([delta("insert", "root", number) for number in range(Statement.MAX_ROWS + 1)])
    assert [len(words.split()[2].split(",")) for words in statements] == [Statement.MAX_ROWS, 1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (delta("insert", "nowhere", 1), "no table nowhere"),
        (delta("insert", "root", 1, colour=1), "no column colour"),
        (Delta("root", Operation.DELETE, {"v": 1}, {}, {}), "its key is id"),
    ],
)
def test_what_the_target_cannot_take_is_refused(bad: Delta, message: str) -> None:
    with pytest.raises(TargetRejectedError, match=message):
        plan([bad])


@pytest.mark.parametrize(("units", "statements"), [(FOLDED_LAYERS - 1, FOLDED_LAYERS - 1), (FOLDED_LAYERS, 1)])
def test_units_are_folded_when_they_would_stand_in_many_layers(units: int, statements: int) -> None:
    known = Catalogue({"leaf": replace(CATALOGUE.tables["leaf"], judged=())})
    written, read = Signatures(known).of([delta("update", "leaf", 1, v=0)])
    hot = [Unit(n, f"T-{n}", (delta("update", "leaf", 1, v=n),), written, read) for n in range(units)]
    assert len(list(Planner(known, LEVELS).plan(hot, folded=True))) == statements
    assert len(list(Planner(known, LEVELS).plan(hot))) == units


def runs(catalogue: Catalogue, *deltas: Delta) -> list[str]:
    """Returns the statements of a unit in its source's order, with runs of rows that may name each other."""
    planner, unit = Planner(catalogue, LEVELS), Unit(1, "T-1", deltas)
    statements = [_words(statement) for statement in planner.in_runs(unit)]
    assert planner.has_runs(unit) is (len(statements) < len(deltas))
    return statements


def test_consecutive_rows_that_may_name_each_other_are_one_run() -> None:
    deltas = [
        delta("insert", "tree", 9, up=8),
        delta("insert", "tree", 8, up=None),
        delta("insert", "tree", 7),
        delta("update", "tree", 1, v=1),
        delta("update", "tree", 2, v=1),
        delta("delete", "tree", 1),
        delta("delete", "tree", 2),
        delta("delete", "leaf", 3),
        delta("delete", "leaf", 4),
        delta("delete", "tree", 5),
    ]
    expected = "insert tree 9,8 | insert tree 7 | update tree 1 | update tree 2 | delete tree 1,2 | "
    assert " | ".join(runs(CATALOGUE, *deltas)) == f"{expected}delete leaf 3 | delete leaf 4 | delete tree 5"


@pytest.mark.parametrize("shared", [True, False])
def test_deletes_whose_actions_may_meet_in_one_row_are_no_run(shared: bool) -> None:
    pair = ("a", "b") if shared else ("a", "c")
    columns = {name: Column(name, "bigint", TypeFamily.INTEGER) for name in ("id", "a", "b", "c")}
    child = replace(
        table("child", "id a b c"),
        columns=columns,
        foreign_keys=(
            ForeignKey("one", ("a", "b"), "tree", ("id", "v"), on_delete=ReferentialAction.SET_NULL),
            ForeignKey("two", pair[-1:], "tree", ("id",), on_delete=ReferentialAction.CASCADE),
        ),
    )
    tables = Catalogue({**CATALOGUE.tables, "child": child})
    found = runs(tables, delta("delete", "tree", 1), delta("delete", "tree", 2))
    assert found == (["delete tree 1", "delete tree 2"] if shared else ["delete tree 1,2"])


def test_rows_of_one_shape_keep_their_order_whatever_the_order_of_their_columns() -> None:
    deltas = [
        delta("insert", "root", 3, code=3, v=3),
        delta("insert", "root", 1, v=1, code=1),
        delta("insert", "root", 2, code=2, v=2),
    ]
    assert plan(deltas) == ["insert root 3,1,2"]
    unit = Unit(0, "T-0", tuple(deltas))
    statements = Planner(CATALOGUE, LEVELS).plan([unit], hooked=["root"])
    assert [_words(statement) for statement in statements] == ["insert root 3", "insert root 1", "insert root 2"]
