from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import CatalogueError
from kainite.uow.precedence.levels import Reference, TableGraph, cycles, levels, precedence_map, read_graph
from support.tables import INTEGER, SHOP, catalogue, columns, foreign_key, table


def graph(*references: Reference, alone: tuple[str, ...] = ()) -> TableGraph:
    tables = {name for edge in references for name in (edge.parent, edge.child)} | set(alone)
    return TableGraph(tuple(sorted(tables)), references)


def firm(parent: str, child: str) -> Reference:
    return Reference(parent, child, name=f"{child}_{parent}")


def loose(parent: str, child: str) -> Reference:
    return Reference(parent, child, deferrable=True)


def test_a_level_is_the_longest_way_down_from_the_top() -> None:
    assert precedence_map(SHOP) == {
        "country": 1,
        "customer": 2,
        "history": 3,
        "orders": 3,
        "order_line": 4,
        "shipment": 5,
    }


def test_a_chain_numbers_its_leaf() -> None:
    assert levels(graph(firm("a", "b"), firm("b", "c"), firm("c", "d"))) == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_a_shortcut_does_not_raise_a_table() -> None:
    assert levels(graph(firm("a", "b"), firm("b", "c"), firm("a", "c"))) == {"a": 1, "b": 2, "c": 3}


def test_a_table_alone_and_one_that_references_itself_are_at_the_top() -> None:
    assert levels(graph(firm("tree", "tree"), alone=("lonely",))) == {"lonely": 1, "tree": 1}


def test_partitions_of_a_table_that_references_itself_are_at_its_level() -> None:
    up, whole = foreign_key(("up",), "tree", ("id",)), table("tree", columns(id=INTEGER, up=INTEGER), ("id",))
    tree, part = replace(whole, foreign_keys=(up,)), replace(whole, name="p1", part_of="tree", foreign_keys=(up,))
    leaf = table("leaf", columns(id=INTEGER, up=INTEGER), ("id",), up)
    assert precedence_map(catalogue(tree, part, leaf)) == {"p1": 1, "tree": 1, "leaf": 2}


def test_foreign_keys_to_tables_outside_the_catalogue_play_no_part() -> None:
    tables = catalogue(table("c", columns(id=INTEGER, p=INTEGER), ("id",), foreign_key(("p",), "x.p", ("id",))))
    assert precedence_map(tables) == {"c": 1}


class TestCycles:
    def test_a_cycle_that_can_be_deferred_shares_a_level(self) -> None:
        found = levels(graph(firm("top", "a"), loose("a", "b"), loose("b", "a"), firm("b", "below")))
        assert found == {"top": 1, "a": 2, "b": 2, "below": 3}

    def test_what_cannot_be_deferred_still_puts_the_parent_first(self) -> None:
        assert levels(graph(firm("a", "b"), loose("b", "a"), firm("b", "c"))) == {"a": 1, "b": 2, "c": 3}

    def test_a_cycle_that_cannot_be_deferred_is_spelled_out(self) -> None:
        with pytest.raises(CatalogueError) as refused:
            levels(graph(firm("a", "b"), firm("b", "c"), firm("c", "a"), loose("a", "c")))
        message = str(refused.value)
        ways = ("a → b → c → a", "b → c → a → b", "c → a → b → c")
        assert any(f"tables {way} reference each other" in message for way in ways)
        assert (
            "make one of them DEFERRABLE, or drop one where the target defers none, as MariaDB (a_c, b_a, c_b)"
            in message
        )

    def test_two_cycles_with_a_table_in_common_are_one(self) -> None:
        knot = graph(loose("a", "b"), loose("b", "a"), loose("b", "c"), loose("c", "b"), firm("c", "d"))
        assert cycles(knot) == (("a", "b", "c"),)
        assert levels(knot) == {"a": 1, "b": 1, "c": 1, "d": 2}

    def test_tables_without_a_cycle_have_none(self) -> None:
        assert cycles(graph(firm("a", "b"), firm("b", "b"))) == ()


_tables = st.integers(0, 9).map(lambda number: f"t{number}")
_forests = st.lists(st.tuples(_tables, _tables).filter(lambda pair: pair[0] <= pair[1]), max_size=25)
_knots = st.lists(st.builds(Reference, _tables, _tables, st.booleans()), max_size=25)


@given(_forests)
def test_parents_stand_above_their_children_and_no_level_is_higher_than_it_must(pairs: list[tuple[str, str]]) -> None:
    references = [firm(*pair) for pair in pairs]
    found = levels(graph(*references))
    for name, level in found.items():
        above = [found[edge.parent] for edge in references if edge.child == name != edge.parent]
        assert level == 1 + max(above, default=0)


@given(_knots)
def test_with_cycles_a_parent_is_never_below_its_child_unless_deferred(references: list[Reference]) -> None:
    every = graph(*references)
    knotted = {name: group for group in cycles(every) for name in group}
    try:
        found = levels(every)
    except CatalogueError:
        assert any(not edge.deferrable for edge in references)
        return
    for edge in references:
        together = edge.child in knotted.get(edge.parent, ())
        if edge.parent != edge.child and not (together and edge.deferrable):
            assert found[edge.parent] < found[edge.child]


class TestPairsFile:
    def test_pairs_comments_and_tables_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "pairs"
        path.write_text("# parent child\ncountry customer\n\ncustomer  orders # hot\nlonely\ncountry customer\n")
        found = read_graph(path)
        assert found.references == (Reference("country", "customer"), Reference("customer", "orders"))
        assert levels(found) == {"country": 1, "lonely": 1, "customer": 2, "orders": 3}

    def test_a_line_of_three_names_is_refused_with_its_place(self, tmp_path: Path) -> None:
        path = tmp_path / "pairs"
        path.write_text("a b\na b c\n")
        with pytest.raises(CatalogueError, match=r"pairs:2: one 'parent child' pair on each line, not 3 names"):
            read_graph(path)

    def test_a_cycle_in_a_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "pairs"
        path.write_text("a b\nb a\n")
        with pytest.raises(CatalogueError, match="reference each other"):
            levels(read_graph(path))

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(CatalogueError, match="nowhere"):
            read_graph(tmp_path / "nowhere")
