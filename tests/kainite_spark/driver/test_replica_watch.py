"""What the apply job asks a replica's target for, beside its work."""

from __future__ import annotations

from kainite.observe.meter import Meter
from kainite.observe.metric import Metric
from kainite.verdict.facts import ReplicaFacts
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.replica_watch import watching
from support.waiting import eventually


class Gauges:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.values[metric.series] = value


def test_what_the_target_tells_is_in_the_metrics_and_the_health() -> None:
    found = ReplicaFacts(load="live", loading=("a",), failed=(("b", "x"),), given_up=(("c", "y"),), ranges_left=7,
                         verdict="different", passed=False, different=3, age=5.0,
                         good_age=100.0, every=60.0)  # fmt: skip
    gauges, health = Gauges(), JobHealth()
    with watching(lambda: found, health, Meter(gauges)):
        eventually(lambda: "kainite_verify_late" in gauges.values)
    assert health.replica is found
    assert gauges.values == {
        "kainite_replica_tables_loading": 1, "kainite_replica_tables_failed": 1,
        "kainite_replica_tables_given_up": 1, "kainite_replica_ranges_left": 7,
        "kainite_verify_not_passed": 1, "kainite_verify_different_rows": 3, "kainite_verify_age_seconds": 5_000.0,
        "kainite_verify_good_age_seconds": 100_000.0, "kainite_verify_late": 1,
    }  # fmt: skip


def test_a_target_that_does_not_answer_changes_nothing() -> None:
    asked: list[int] = []

    def away() -> ReplicaFacts:
        asked.append(1)
        return ReplicaFacts(error="away")

    gauges, health = Gauges(), JobHealth()
    with watching(away, health, Meter(gauges)):
        eventually(lambda: bool(asked))
    assert (health.replica, gauges.values) == (None, {})
