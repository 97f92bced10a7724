"""What of a catalogue parts units that were signed under it from units that were signed under another."""

from __future__ import annotations

from dataclasses import replace

from kainite.uow.catalogue.tables import Catalogue, ReferentialAction, Table
from kainite.uow.scheme import MIXED, Comparisons, Scheme
from support.tables import INTEGER, catalogue, columns, foreign_key, table

PARENT = table("p", columns(id=INTEGER))
CHILD = table("c", columns(id=INTEGER, p=INTEGER), ("id",), foreign_key(("p",), "p", ("id",)))


def parted(one: Catalogue, other: Catalogue, tables: set[str], others: set[str]) -> bool:
    comparisons = Comparisons()
    comparisons.add("one", Scheme.of(one))
    comparisons.add("other", Scheme.of(other))
    return comparisons.parted("one", tables, "other", others)


def acting(child: Table, action: ReferentialAction) -> Table:
    return replace(child, foreign_keys=(replace(child.foreign_keys[0], on_delete=action),))


def test_an_action_is_a_change_of_signatures() -> None:
    one, other = catalogue(PARENT, CHILD), catalogue(PARENT, acting(CHILD, ReferentialAction.CASCADE))
    assert Scheme.of(one).id != Scheme.of(other).id
    assert parted(one, other, {"p"}, {"c"})


def test_a_table_that_became_a_partition_parts_units_on_it_from_those_on_its_whole() -> None:
    whole, alone = (table(name, columns(id=INTEGER)) for name in ("whole", "part"))
    one, other = catalogue(whole, alone), catalogue(whole, replace(alone, part_of="whole"))
    assert parted(one, other, {"part"}, {"whole"})
    assert not parted(one, one, {"part"}, {"whole"})


def test_a_table_that_gets_its_first_partition_parts_units_on_it_from_those_before() -> None:
    # Its rows have other signatures from then on: a key may stand for several rows.
    whole, part = (table(name, columns(id=INTEGER)) for name in ("whole", "part"))
    one, other = catalogue(whole), catalogue(whole, replace(part, part_of="whole"))
    assert parted(one, other, {"whole"}, {"whole"})


def test_units_that_empty_tables_that_a_foreign_key_connects_are_parted() -> None:
    comparisons = Comparisons()
    comparisons.add("one", Scheme.of(catalogue(PARENT, CHILD, table("x", columns(id=INTEGER)))))
    assert comparisons.parted(MIXED, {"p"}, MIXED, {"c"})
    assert comparisons.parted(MIXED, {"p"}, "one", {"c"})
    assert not comparisons.parted(MIXED, {"p"}, MIXED, {"x"})
