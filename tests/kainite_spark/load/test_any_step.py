"""A step goes to the kind of target that its load has."""

from __future__ import annotations

import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite_spark.load.any_step import run_any_step
from kainite_spark.load.tasks import LoadTask, StepOutcome


@pytest.mark.parametrize(
    ("target", "cause"),
    [("mariadb://u@127.0.0.1:1/d", "MariaDB: cannot connect"), ("host=127.0.0.1 port=1 user=u dbname=d", "connection")],
)
def test_a_target_that_is_away_is_asked_again_by_its_own_driver(target: str, cause: str) -> None:
    ends = ReplicaEnds(SourceSlot("host=127.0.0.1 port=1", "s", "p"), target, "log/0")
    result = run_any_step(LoadTask(ends, 1, "a snapshot"), 7)
    assert (result.step, result.outcome) == (7, StepOutcome.AGAIN)
    assert cause in result.cause
