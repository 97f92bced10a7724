"""What Spark sends to its tasks: targets, which are picklable and hide their secrets, and the units of a target."""

from __future__ import annotations

import pickle
import sys

import pytest

from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.opening import open_target
from support.tables import SHOP


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheimnis@host/shop",
        "sqlite:///shop.db",
        f"exec:{sys.executable} -c pass --password geheimnis",
    ],
)
def test_a_target_is_picklable_and_shows_no_secret(url: str) -> None:
    target = open_target(url, SHOP)
    assert type(pickle.loads(pickle.dumps(target))) is type(target)
    assert "geheimnis" not in repr(target)
    target.close()


def test_a_unit_is_what_it_was_after_pickling() -> None:
    unit = Unit(7, "T-7", (Delta("item", Operation.DELETE, {"id": 1}, {}, {}),), frozenset({1}), frozenset({2}), 40)
    assert pickle.loads(pickle.dumps(unit)) == unit


def test_a_unit_without_signatures_conflicts_with_nothing() -> None:
    unit = Unit(7, "T-7", ())
    assert (unit.written, unit.read, unit.size, unit.fault) == (frozenset(), frozenset(), 0, None)
