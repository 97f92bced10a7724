"""A meter passes each observation to every sink, as it came."""

from __future__ import annotations

from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import CHILD_FAILURES, GET_RECORDS_TIME, Metric


class Notes:
    def __init__(self) -> None:
        self.seen: list[tuple[Metric, float, str | None]] = []

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.seen.append((metric, value, shard))


def test_each_sink_sees_each_observation() -> None:
    sinks = Notes(), Notes()
    meter = Meter(*sinks)

    meter.observe(CHILD_FAILURES, shard="s")
    meter.observe(GET_RECORDS_TIME, 12.5)

    for sink in sinks:
        assert sink.seen == [(CHILD_FAILURES, 1, "s"), (GET_RECORDS_TIME, 12.5, None)]


def test_without_sinks_nothing_happens() -> None:
    SILENT.observe(CHILD_FAILURES)
