"""The section *PostgreSQL* of docs/extract.md, carried out as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite_demo.postgres_server import programs

PAGE = Path(__file__).parents[4] / "docs" / "extract.md"
LIMIT = 60.0


@pytest.fixture
def shop(postgres_server: str) -> Iterator[str]:
    """Gives the address of the page's database, with its two tables."""
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute("CREATE DATABASE shop")
    url = make_conninfo(postgres_server, dbname="shop")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        connection.execute("CREATE TABLE order_line (order_id int, line int, PRIMARY KEY (order_id, line))")
    yield url
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'orders'")
        admin.execute("DROP DATABASE shop WITH (FORCE)")
        admin.execute("DROP ROLE kainite")


@pytest.fixture
def shell(shop: str, tmp_path: Path) -> Callable[[str], list[str]]:
    """Gives a function that runs a block of the page in a shell, and returns the lines of its output."""
    address = conninfo_to_dict(shop)
    path = os.pathsep.join([sysconfig.get_path("scripts"), str(programs()), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PGHOST": str(address["host"]), "PGUSER": str(address["user"])}

    def run(commands: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-eu", "-c", commands],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def blocks(language: str) -> list[str]:
    """Returns the section's blocks of a language."""
    (section,) = re.findall(r"^## PostgreSQL\n(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.S | re.M)


def without_origin(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record with a name and a commit time that are the same for all transactions."""
    return record | {"uow": "U"} | {name: 0 for name in ("time",) if name in record}


def test_from_the_publication_to_the_first_records(
    shop: str, shell: Callable[[str], list[str]], kinesis: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    preparation, extraction = blocks("sh")
    (settings,) = blocks("properties")
    (shown,) = blocks("json")
    lsn = shell(preparation)[-1]
    with psycopg.connect(shop) as connection:
        connection.execute("INSERT INTO orders VALUES (1, 'first')")

    here = shlex.quote(make_conninfo(shop, user="kainite"))
    settings = settings.replace("postgresql://kainite@db.internal/shop", here).replace("eu-central-1", "us-east-1")
    (tmp_path / "orders.properties").write_text(f"{settings}kinesisEndpoint = {moto_endpoint}\n")
    kinesis.create_stream(StreamName="orders-changes", ShardCount=1)
    shell(f"{extraction.replace('0/1718490', lsn).rstrip()} --once")

    found = list(map(orjson.loads, records(kinesis, "orders-changes")))
    assert list(map(without_origin, found)) == list(map(without_origin, map(orjson.loads, shown.splitlines())))
    assert all(abs(record["time"] / 1e9 - time.time()) < 3600 for record in found if "end" in record)
    assert re.fullmatch(r"pg-\d+-[0-9A-F]+/[0-9A-F]+", found[0]["uow"])
    assert orjson.loads((tmp_path / "orders.offset").read_bytes())["start"]["number"] == 1
    kinesis.delete_stream(StreamName="orders-changes")


def records(kinesis: Any, stream: str) -> Iterator[bytes]:
    """Yields the records of a stream of one shard."""
    (shard,) = kinesis.list_shards(StreamName=stream)["Shards"]
    iterator = kinesis.get_shard_iterator(
        StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    yield from (record["Data"] for record in kinesis.get_records(ShardIterator=iterator)["Records"])
