"""``spark.read.format("kainite")``: the log's units as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import SettingsError
from kainite.log.format.entry import Outcome, StatusMeta, UnitStatus
from kainite.store.dynamodb import DynamoDBStore
from kainite.store.memory import MemoryStore
from kainite.uow.delta import UnitEnd
from kainite.uow.signature import Signatures
from kainite_spark.data_source import LogDataSource, log_of, plan_reading, read_rows
from support.apply_world import insert, update
from support.main_log import MainLog
from support.names import unique

APPLIED_MS = 4_000_000_000_000


def written(log: MainLog) -> dict[str, int]:
    """Appends three units: one applied, one in two appends, one malformed; returns their ids."""
    tids = {"T-1": log.unit("T-1", insert(1), update(1, 2))}
    log.append(log.fragment("T-2", insert(2)))
    log.append(log.fragment("T-2", insert(3), ends=(UnitEnd(2, number=7),)))
    tids["T-2"] = log.tid("T-2")
    tids["bad"] = log.malformed("bad", insert(4))
    log.status(StatusMeta((Outcome(tids["T-1"], UnitStatus.COMMITTED, 3, at_ms=APPLIED_MS),)))
    return tids


@pytest.mark.xdist_group("spark")
def test_units_come_with_their_status_and_deltas_through_spark(spark: Any, dynamodb: Any, moto_endpoint: str) -> None:
    table = unique("source")
    store = DynamoDBStore(dynamodb, table)
    store.create()
    tids = written(MainLog(store, Signatures(None)))
    spark.dataSource.register(LogDataSource)
    options = {"table": table, "endpoint": moto_endpoint, "region": "us-east-1", "unitsPerTask": "2"}
    frame = spark.read.format("kainite").options(**options).load()
    rows = {row["uow"]: row.asDict() for row in frame.collect()}

    assert {uow: row["id"] for uow, row in rows.items()} == tids
    assert {uow: row["status"] for uow, row in rows.items()} == {
        "T-1": "committed", "T-2": "in progress", "bad": "failed",
    }  # fmt: skip
    assert (rows["T-1"]["instance"], rows["T-2"]["number"], rows["bad"]["cause"]) == (3, 7, "bad")
    assert rows["T-2"]["queue"] == ["shard-0"]
    assert (rows["T-1"]["applied_ms"], rows["T-2"]["applied_ms"]) == (APPLIED_MS, None)
    assert 0 < rows["T-2"]["collected_ms"] == rows["T-2"]["dispatched_ms"] < APPLIED_MS
    assert json.loads(rows["T-2"]["deltas"]) == [insert(2).to_json(), insert(3).to_json()]


def test_a_unit_whose_fragments_are_truncated_has_no_deltas_to_show() -> None:
    log = MainLog(MemoryStore(), Signatures(None))
    log.append(log.fragment("T-2", insert(2)))
    log.append(log.fragment("T-2", insert(3), ends=(UnitEnd(2),)))
    log.truncate(log.tid("T-2"))
    (units,) = plan_reading(log.store, "0", 10)

    assert [row[-1] for row in read_rows(log.store, "0", units)] == [None]


def test_units_are_shared_out_to_tasks() -> None:
    log = MainLog(MemoryStore(), Signatures(None))
    tids = list(written(log).values())
    shares = plan_reading(log.store, "0", 2)

    assert [[row.id for row in units.rows] for units in shares] == [tids[:2], tids[2:]]
    assert [row[1] for units in shares for row in read_rows(log.store, "0", units)] == ["T-1", "T-2", "bad"]


def test_an_empty_log_has_no_rows() -> None:
    assert plan_reading(MemoryStore(), "0", 10) == []


def test_a_settings_file_says_where_the_log_is(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("applicationName=app\nstreamName=s\nexecutableName=x\nlogPartition=5\nregionName=eu-west-1\n")
    log = log_of({"properties": str(path)})

    assert (log.table, log.partition, log.aws.region) == ("app-log", "5", "eu-west-1")


@pytest.mark.parametrize(("options", "message"), [({}, "'properties'"), ({"tabel": "x"}, "'tabel' is unknown")])
def test_options_that_name_no_log_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        log_of(options)
