"""The exposition for Prometheus, read by Prometheus' own parser."""

from __future__ import annotations

import threading

from prometheus_client.parser import text_string_to_metric_families

from kainite.observe.health import Health, ShardHealth
from kainite.observe.meter import Meter
from kainite.observe.metric import (
    APPLY_LAG,
    APPLY_METRICS,
    CURRENT_LEASES,
    DAEMON_METRICS,
    INITIALIZE_TIME,
    MILLIS_BEHIND_LATEST,
    PROCESS_RECORDS_TIME,
    RECORDS_PROCESSED,
    RUN_TIME,
    MetricKind,
)
from kainite.observe.prometheus import Prometheus
from kainite.observe.shard_status import ShardStatus, Standstill

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def held(*shards: str, silent: float | None = None) -> list[ShardHealth]:
    return [ShardHealth(ShardStatus(shard, "PROCESSING", silent=silent), Health.QUIET, "") for shard in shards]


def scrape(prometheus: Prometheus, *shards: str) -> Samples:
    page = prometheus.render(held(*shards)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_counters_add_up_and_gauges_keep_the_latest_in_base_units() -> None:
    prometheus = Prometheus()
    meter = Meter(prometheus)
    for value in (3, 4):
        meter.observe(RECORDS_PROCESSED, value, "s-1")
        meter.observe(MILLIS_BEHIND_LATEST, value * 1000, "s-1")
    meter.observe(CURRENT_LEASES, 2)

    samples = scrape(prometheus, "s-1")

    assert samples["kainite_records_processed_total", (("shard", "s-1"),)] == 7
    assert samples["kainite_behind_latest_seconds", (("shard", "s-1"),)] == 4
    assert samples["kainite_leases_held", ()] == 2


def test_timings_are_histograms_of_seconds() -> None:
    prometheus = Prometheus()
    for millis in (3, 40, 2_000):
        prometheus.observe(PROCESS_RECORDS_TIME, millis, "s-1")
    prometheus.observe(INITIALIZE_TIME, 500, "s-1")  # a shard that the metric does not carry

    samples = scrape(prometheus, "s-1")

    assert samples["kainite_process_records_seconds_count", (("shard", "s-1"),)] == 3
    assert samples["kainite_process_records_seconds_sum", (("shard", "s-1"),)] == 2.043
    assert samples["kainite_process_records_seconds_bucket", (("le", "0.05"), ("shard", "s-1"))] == 2
    assert samples["kainite_child_initialize_seconds_sum", ()] == 0.5


def test_every_metric_of_the_table_is_there_before_anything_was_observed() -> None:
    page = Prometheus().render([]).decode()

    kinds = {MetricKind.COUNTER: "counter", MetricKind.GAUGE: "gauge", MetricKind.TIMING: "histogram"}
    assert [m.series for m in DAEMON_METRICS if f"# TYPE {m.series} {kinds[m.kind]}\n" not in page] == []
    assert "kainite_build_info{" in page
    assert "process_resident_memory_bytes " in page


def test_a_gone_shard_is_scraped_once_more_and_then_has_no_series() -> None:
    prometheus = Prometheus()
    for shard in ("s-1", "s-2"):
        prometheus.observe(RECORDS_PROCESSED, 1, shard)
        prometheus.observe(PROCESS_RECORDS_TIME, 1, shard)
    gone = ("kainite_records_processed_total", (("shard", "s-2"),))

    assert gone in scrape(prometheus, "s-1")
    after = scrape(prometheus, "s-1")

    assert not [labels for _, labels in after if ("shard", "s-2") in labels]
    assert after["kainite_records_processed_total", (("shard", "s-1"),)] == 1


def test_a_shard_that_comes_back_starts_its_series_anew() -> None:
    prometheus = Prometheus()
    prometheus.observe(RECORDS_PROCESSED, 5, "s-1")
    scrape(prometheus)
    prometheus.observe(RECORDS_PROCESSED, 2, "s-1")

    assert scrape(prometheus, "s-1")["kainite_records_processed_total", (("shard", "s-1"),)] == 2


def test_health_and_silent_children_are_gauges() -> None:
    prometheus = Prometheus()

    page = prometheus.render(held("s-1", silent=12.5) + held("s-2")).decode()

    assert 'kainite_shards{health="quiet"} 2.0' in page
    assert 'kainite_shards{health="hung"} 0.0' in page
    assert 'kainite_child_silent_seconds{shard="s-1"} 12.5' in page
    assert 'kainite_child_silent_seconds{shard="s-2"}' not in page


def test_odd_shard_names_are_escaped() -> None:
    prometheus = Prometheus()
    name = 'a"b\\c\nd'
    prometheus.observe(RECORDS_PROCESSED, 1, name)

    assert scrape(prometheus, name)["kainite_records_processed_total", (("shard", name),)] == 1


def test_observations_of_many_threads_all_count() -> None:
    prometheus = Prometheus()

    def observe() -> None:
        for number in range(2_000):
            prometheus.observe(RECORDS_PROCESSED, 1, f"s-{number % 7}")

    threads = [threading.Thread(target=observe) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    samples = scrape(prometheus)
    assert sum(value for (name, _), value in samples.items() if name == "kainite_records_processed_total") == 8_000


def test_a_shards_standstill_and_throttling_are_told_while_they_last() -> None:
    prometheus = Prometheus()
    status = ShardStatus("s-1", "PROCESSING", standstill=Standstill(7.0, "why"), throttled=8.0)
    page = prometheus.render([ShardHealth(status, Health.OK, "")]).decode()
    assert 'kainite_shard_standstill_seconds{shard="s-1"} 7.0' in page
    assert 'kainite_shard_throttled_seconds{shard="s-1"} 8.0' in page
    assert 'seconds{shard="s-1"}' not in prometheus.render(held("s-1")).decode()


def test_labels_of_a_process_stand_with_each_series() -> None:
    prometheus = Prometheus(APPLY_METRICS, {"target": "crm"})
    prometheus.observe(APPLY_LAG, 1500, None)
    prometheus.observe(RUN_TIME, 20, None)
    page = prometheus.render([]).decode()
    assert 'kainite_apply_lag_seconds{target="crm"} 1.5\n' in page
    assert 'kainite_apply_run_seconds_bucket{le="0.025",target="crm"} 1.0\n' in page
    assert 'kainite_shards{health="ok",target="crm"} 0.0\n' in page
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    assert [line for line in lines if 'target="crm"' not in line] == []
