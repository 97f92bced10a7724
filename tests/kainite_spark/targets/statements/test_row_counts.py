from __future__ import annotations

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.statements.planner import Statement, StatementShape
from kainite_spark.targets.statements.row_counts import check_rows

UPDATE = StatementShape("item", Operation.UPDATE, ("v",), ("id",))
ONE, OTHER = (Delta("item", Operation.UPDATE, {"id": key}, {"v": 0}, {}) for key in (1, 2))


def test_a_statement_that_meets_a_row_for_each_delta_is_right() -> None:
    check_rows(Statement(UPDATE, [ONE, OTHER]), 2)


@pytest.mark.parametrize(
    ("deltas", "met", "message"),
    [
        ([ONE], 0, "item: update met 0 rows, not 1, with (id) = (1)"),
        ([ONE], 2, "item: update met 2 rows, not 1, with (id) = (1)"),
        ([ONE, OTHER], 1, "item: update met 1 row for 2 deltas"),
    ],
)
def test_the_error_of_a_missed_row_names_the_row(deltas: list[Delta], met: int, message: str) -> None:
    with pytest.raises(TargetRejectedError) as refused:
        check_rows(Statement(UPDATE, deltas), met)
    assert str(refused.value) == message


def test_an_upsert_that_changes_nothing_beside_the_key_need_not_meet_a_row() -> None:
    upsert = StatementShape("item", Operation.UPSERT, ("id",), ("id",))
    check_rows(Statement(upsert, [Delta("item", Operation.UPSERT, {"id": 1}, {"id": 1}, {})]), 0)
