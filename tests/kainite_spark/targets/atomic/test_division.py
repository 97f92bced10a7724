"""How units are divided between targets."""

from __future__ import annotations

from kainite_spark.targets.atomic.division import divided
from kainite_spark.targets.contract import Unit
from support.several_world import TARGETS, contact, item

BOTH = Unit(1, "both", (contact(1), item(1), contact(2)))
SHOP = Unit(2, "shop", (item(2),))


def test_each_target_gets_its_deltas_in_their_order() -> None:
    found = divided([BOTH, SHOP], TARGETS)
    assert list(found) == ["shop", "crm"]
    assert [(unit.tid, unit.deltas) for unit in found["shop"]] == [(1, (item(1),)), (2, (item(2),))]
    assert [(unit.tid, unit.deltas) for unit in found["crm"]] == [(1, (contact(1), contact(2)))]


def test_a_unit_of_one_target_goes_there_as_it_is() -> None:
    assert divided([SHOP], TARGETS) == {"shop": [SHOP]}


def test_a_unit_without_deltas_belongs_to_the_first_target() -> None:
    empty = Unit(3, "empty", ())
    assert divided([empty], TARGETS) == {"shop": [empty]}
    assert divided([], TARGETS) == {}
