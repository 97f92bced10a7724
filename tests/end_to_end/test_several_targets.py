"""Units of work into PostgreSQL and MariaDB at once: a real daemon, and an apply job on Spark for each target."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, Pipeline, emit
from support.stores import Database
from support.waiting import eventually

TARGETS = {"target.shop": "", "target.crm": "", "target.crm.tables": "contact", "applyMaster": "local[1]"}


def kainite(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "kainite", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def unit(uow: str, *tables: str, key: int) -> bytes:
    row = {"key": {"id": key}, "row": {"v": key}, "op": "upsert", "uow": uow}
    return emit(*({**row, "table": table} for table in tables), {"uow": uow, "end": True, "count": len(tables)})


@pytest.mark.long
@pytest.mark.timeout(600)
def test_each_target_is_applied_by_its_own_job(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, postgres: str, mariadb: str, tmp_path: Path
) -> None:
    """Shows that the first job leaves the other target's part in the log, which the commands tell, until that one
    comes."""
    shop, crm = Database(postgres), Database(mariadb)
    shop.run("CREATE TABLE item (id bigint PRIMARY KEY, v bigint)")
    crm.run("CREATE TABLE contact (id bigint PRIMARY KEY, v bigint)")
    name = unique("several")
    pipeline = Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, shop, tmp_path)
    keys = {**TARGETS, "target.shop": shop.target, "target.crm": crm.target}
    file = pipeline.properties(**keys)
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("target=")))
    at = ("-p", str(file))

    with pipeline.daemon(file):
        pipeline.put([unit("both", "item", "contact", key=1), unit("shop alone", "item", key=2)])
        eventually(lambda: len(pipeline.statuses()) == 2, LIMIT * 6)
        assert json.loads(kainite("apply", *at, "--target", "shop", "--once", "--json"))["committed"] == 2
        assert (shop.rows("SELECT id FROM item ORDER BY 1"), crm.rows("SELECT id FROM contact")) == ([(1,), (2,)], [])
        eventually(lambda: pipeline.statuses()["shop alone"] == "committed", LIMIT * 6)
        shown = {row["uow"]: row for row in map(json.loads, kainite("log", "show", *at, "--json").splitlines())}
        assert shown["both"]["targets"] == {"shop": "committed", "crm": "in progress"}
        marks = json.loads(kainite("log", "mark", *at, "--json"))
        assert marks["common"] == marks["targets"]["crm"] == shown["both"]["id"] < marks["targets"]["shop"]

        assert json.loads(kainite("apply", *at, "--target", "crm", "--once", "--json"))["committed"] == 1
        assert crm.rows("SELECT id, v FROM contact") == [(1, 1)]
        eventually(lambda: pipeline.statuses()["both"] == "committed", LIMIT * 6)
