"""Benchmarks run, in a small size: their clients connect, append and are answered.

Those that start databases, Spark or several daemons carry the mark ``long``: they show no safeguard, and take minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def measured(name: str, *arguments: str, limit: float = 110) -> Any:
    command = [sys.executable, str(BENCHMARKS / name), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(240)
def test_clients_append_to_an_owner() -> None:
    found = measured("log_service.py", "--units", "160", "--clients", "1", "2", "--partitions", "2")
    assert [result["clients"] for result in found["appends"]] == [0, 1, 2]
    assert all(result["units_per_second"] > 0 for result in found["appends"])
    assert [result["partitions"] for result in found["owners"]] == [2]
    assert all(result["cpu_us_per_unit"] > 0 for result in found["owners"])


@pytest.mark.long
@pytest.mark.timeout(240)
def test_another_member_answers_when_the_owner_is_killed() -> None:
    found = measured("failover.py", "--kills", "1", "--ways", "kill")
    assert found["kill"]["times"] == 1


@pytest.mark.long
@pytest.mark.timeout(240)
def test_without_a_word_from_the_owners_host_its_lease_is_waited_for() -> None:
    found = measured("failover.py", "--kills", "1")
    assert found.keys() == {"kill", "stop", "away"}
    assert found["kill"]["p50_s"] < found["away"]["p50_s"]


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_an_apply_job_that_stands_by_goes_on_where_another_one_was_killed() -> None:
    found = measured("apply_failover.py", "--rounds", "1", "--ways", "away", "--lease", "2", limit=220)
    assert 0 < found["away"]["fenced"]["most_s"] < found["away"]["commit"]["most_s"]


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_an_apply_job_goes_on_when_all_workers_were_killed_and_others_come() -> None:
    found = measured("apply_failover.py", "--rounds", "1", "--ways", "workers", limit=220)
    assert found["workers"]["commit"]["most_s"] > 0


@pytest.mark.long
@pytest.mark.timeout(240)
def test_both_extractors_give_all_transactions() -> None:
    found = measured("sources.py", "--units", "20", "--rounds", "1")
    assert [one["reader"] for one in found] == ["kainite-extract-postgresql", "kainite-extract-mysql"]


@pytest.mark.timeout(240)
def test_units_go_into_mariadb_and_into_postgresql() -> None:
    found = measured("mariadb_apply.py", "--units", "30", "--rounds", "1")
    assert found["rounds"].keys() == {"MariaDB", "by hand", "PostgreSQL"}


def test_units_go_into_one_target_and_into_two() -> None:
    found = measured("two_targets.py", "--units", "20", "--rounds", "1")
    assert 0 < found["two targets, the slower job"] < found["two targets, both jobs"]


@pytest.mark.long
def test_units_go_into_two_targets_that_commit_together() -> None:
    found = measured("two_targets.py", "--units", "10", "--rounds", "1", "--together")
    assert set(found) == {"one target", "each by itself", "together"}


@pytest.mark.timeout(240)
def test_the_log_takes_units_and_counts_what_they_cost() -> None:
    found = measured("log_append.py", "--units", "200", "--baseline-units", "10")
    assert found["log"]["wcu"] > 0


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_shard_is_read_by_polling_and_by_fan_out() -> None:
    found = measured("fan_out.py", "--records", "400", "--arrivals", "3")
    assert [one["way"] for one in found["backlog"]] == ["polling", "HTTP/1.1", "HTTP/2"]
    assert [one["way"] for one in found["latency"]] == ["polling, 200 ms", "HTTP/1.1", "HTTP/2"]
    assert all(one["cpu_us_per_record"] > 0 for one in found["backlog"])


@pytest.mark.long
@pytest.mark.timeout(240)
def test_what_a_worker_asks_of_aws_is_counted() -> None:
    idle, busy = measured("cost.py", "--seconds", "3", "--shards", "1", "--hosts", "1", "--kinds", "plain")
    assert (idle["busy"], busy["busy"]) == (False, True)
    assert busy["requests"]["UpdateItem"] > 0
    assert busy["write_units"] >= busy["requests"]["UpdateItem"]
    assert busy["kinesis"]["GetRecords"] > 0


def test_each_step_of_a_unit_in_the_log_is_measured() -> None:
    found = measured("log_codec.py", "--units", "200", "--rounds", "1")
    assert found.keys() >= {"collect", "encode", "decode", "fold", "snapshot written", "snapshot read"}


@pytest.mark.long
@pytest.mark.timeout(240)
def test_units_come_to_the_driver_with_and_without_the_feed() -> None:
    read, fed = measured("feed.py", "--units", "3", "--idle", "1", "--settle", "2")
    assert (read["fed"], fed["fed"]) == (False, True)
    assert read["after_durable_ms"] > 0
    assert fed["median_ms"] > 0


@pytest.mark.timeout(240)
def test_units_wait_for_the_watermark() -> None:
    found = measured("watermark.py", "--shards", "2", "--seconds", "1", "--read", "0.1", "--units", "100")
    assert [one["kind"] for one in found["latency"]] == ["busy", "idle"]
    assert all(one["units"] > 0 for one in found["latency"])
    assert found["cpu_us_per_delta"].keys() == {"marker", "watermark"}


def test_the_commands_of_a_person_who_looks_are_timed() -> None:
    found = measured("commands.py", "--units", "2000", "--rounds", "1")
    assert found.keys() >= {"--help", "status", "log show --limit 20", "leases"}
    assert all(timed["processor"] > 0 for timed in found.values())


@pytest.mark.long
@pytest.mark.timeout(240)
def test_source_and_target_are_compared_in_two_ways() -> None:
    found = measured("verify.py", "--rows", "2000", "--databases", "narrow")
    assert [(one["method"], one["differing"]) for one in found] == [
        ("kainite", 0), ("count and checksum", 0), ("kainite", 1), ("count and checksum", 1),
    ]  # fmt: skip
    assert found[0]["held_ms"] is not None
    assert all(one["wire_bytes"] > 0 for one in found)


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_a_load_is_measured_beside_a_dump() -> None:
    command = ["--rows", "2000", "--databases", "narrow", "--methods", "kainite", "pg_dump | psql"]
    done = subprocess.run([sys.executable, str(BENCHMARKS / "load.py"), "--json", *command], capture_output=True,
                          text=True, check=False, timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["method"], one["rows"]) for one in found] == [("kainite", 2000), ("pg_dump | psql", 2000)]
    assert found[0]["worker_peak_mb"] > 0


@pytest.mark.timeout(240)
def test_the_console_answers_on_a_log_of_many_units() -> None:
    found = measured("console.py", "--units", "1000", "--pages", "1", "--open", "0")
    assert found["pages"].keys() == {"overview", "units", "unit", "apply"}
    assert all(figures["ms"] > 0 for figures in found["filters"].values())
