"""The options for applying units."""

from __future__ import annotations

import pytest

from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.plan.micro_batch import MicroBatch
from kainite_spark.targets.fence import Fence


def test_pauses_of_an_unavailable_target_double_up_to_the_limit() -> None:
    backoff = Retry(first=0.1, limit=0.5).backoff
    assert [backoff.after(failures) for failures in (1, 2, 3, 4, 9)] == pytest.approx([0.1, 0.2, 0.4, 0.5, 0.5])


@pytest.mark.parametrize(("alone", "in_order", "group_units"), [(True, False, 1), (False, True, 7), (False, False, 7)])
def test_a_delayed_unit_has_a_transaction_of_its_own(alone: bool, in_order: bool, group_units: int) -> None:
    options = ApplyOptions(stops=True, group_units=7, in_order=not in_order)
    suited = options.suited(MicroBatch(Fence("log/0", 1, 1), (), 1, False, alone, in_order, {7: ("item",)}))
    assert suited == ApplyOptions(stops=True, group_units=group_units, in_order=in_order, only={7: ("item",)})
