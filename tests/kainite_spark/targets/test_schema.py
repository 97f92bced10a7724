from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.levels import precedence_map
from kainite_spark.targets.schema import Schema
from support.tables import INTEGER, SHOP, catalogue, columns, foreign_key, table


def cycle(*, deferrable: bool) -> Catalogue:
    keys = [foreign_key((other,), other, ("id",), deferrable=deferrable) for other in ("b", "a")]
    return catalogue(
        table("a", columns(id=INTEGER, b=INTEGER), ("id",), keys[0]),
        table("b", columns(id=INTEGER, a=INTEGER), ("id",), keys[1]),
    )


def test_levels_are_computed_by_default() -> None:
    schema = Schema.of(SHOP)
    assert (schema.catalogue, schema.levels, schema.cyclic) == (SHOP, precedence_map(SHOP), False)


def test_the_users_levels_win() -> None:
    levels = dict.fromkeys(SHOP.tables, 3)
    assert Schema.of(SHOP, levels).levels == levels
    assert Schema.of(SHOP, {}).levels == precedence_map(SHOP)


def test_a_cycle_that_can_be_deferred_is_marked() -> None:
    schema = Schema.of(cycle(deferrable=True))
    assert schema.cyclic
    assert set(schema.levels) == {"a", "b"}


def test_a_cycle_that_cannot_be_deferred_is_refused_even_with_the_users_levels() -> None:
    with pytest.raises(CatalogueError):
        Schema.of(cycle(deferrable=False), {"a": 0, "b": 1})
