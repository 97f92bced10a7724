"""Units of work into PostgreSQL and MariaDB at once: a real daemon, and an apply job on Spark for each target."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.names import unique
from support.pipeline import LIMIT, Pipeline, emit
from support.preparing_postgres import new_database, two_servers
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


@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_servers_commit_together(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    """Shows one apply job serves both, finishes what a dead one left, and leaves a refused unit out of both."""
    with two_servers() as servers, new_database(servers[0]) as first, new_database(servers[1]) as second:
        shop, crm = Database(first), Database(second)
        shop.run("CREATE TABLE item (id bigint PRIMARY KEY, v bigint)")
        crm.run("CREATE TABLE contact (id bigint PRIMARY KEY, v bigint CHECK (v < 100))")
        name = unique("together")
        pipeline = Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, shop, tmp_path)
        file = pipeline.properties(**{**TARGETS, "target.shop": first, "target.crm": second, "targetCommit": "atomic"})
        at = ("-p", str(file))
        left = gid_of(f"{name}-log/0", "crm", TransactionName(0, 0, "a"))
        with pipeline.daemon(file):
            pipeline.put([unit("both", "item", "contact", key=1), unit("refused", "item", "contact", key=100)])
            eventually(lambda: len(pipeline.statuses()) == 2, LIMIT * 6)
            with psycopg.connect(second, autocommit=True) as dead:
                dead.execute("BEGIN")
                dead.execute("LOCK TABLE contact")
                dead.execute(f"PREPARE TRANSACTION '{left}'")
            assert subprocess.run(
                [sys.executable, "-m", "kainite", "apply", "resolve", *at, "--json"],
                capture_output=True, text=True, check=False,
            ).stdout.count(left) == 1  # fmt: skip
            done = json.loads(kainite("apply", *at, "--once", "--json"))
            assert (done["committed"], done["failed"]) == (1, 1)
            assert (shop.rows("SELECT id, v FROM item"), crm.rows("SELECT id, v FROM contact")) == ([(1, 1)], [(1, 1)])
            eventually(lambda: pipeline.statuses()["refused"] == "failed", LIMIT * 6)
            assert "no transaction is left prepared" in kainite("apply", "resolve", *at)
