"""Errors about values refuse a unit; every other error is Kainite's own."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pytest

from kainite.base.errors import TargetRejectedError
from kainite_spark.targets.statements.unit_values import values_refused


@pytest.mark.parametrize(
    "broken",
    [lambda: "\ud800".encode(), lambda: int(float("inf")), lambda: Decimal("x"), lambda: len(7)],  # type: ignore[arg-type]
    ids=["half a surrogate pair", "no finite number", "no number", "another kind of value"],
)
def test_an_error_about_a_value_refuses_the_unit_and_is_named(broken: object) -> None:
    with pytest.raises(TargetRejectedError, match="a value cannot be sent: ") as refused, values_refused():
        broken()  # type: ignore[operator]
    assert isinstance(refused.value.__cause__, ValueError | TypeError | ArithmeticError | InvalidOperation)


@pytest.mark.parametrize("mistake", [KeyError("column"), AttributeError("name"), AssertionError(), MemoryError()])
def test_a_mistake_of_kainites_own_fails_no_unit(mistake: Exception) -> None:
    with pytest.raises(type(mistake)), values_refused():
        raise mistake
