"""``kainite replicate`` with a MariaDB target, as a user runs it, from PostgreSQL and from MariaDB."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from kainite.capture.mysql.command import PROGRAM as OF_MARIADB
from kainite.capture.postgresql.command import PROGRAM as OF_POSTGRESQL
from kainite.capture.postgresql.replication import SourceSlot
from kainite.cli.main import main
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.store.dynamodb import DynamoDBStore
from kainite.targets.mariadb.rows import rows_if_there, rows_of
from kainite_spark.targets.mariadb import ledger as of_the_apply_job
from support.mariadb_loading import mariadb_target
from support.mariadb_server import run_script
from support.mariadb_source import execute, source_database
from support.names import unique
from support.postgresql_source import source
from support.replicas import run
from support.waiting import eventually

__all__ = ["source"]
TABLES = (
    "DROP TABLE item, note",
    "CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL UNIQUE, price numeric(10,2), at timestamptz,"
    " extra jsonb)",
    "CREATE TABLE line (id bigint PRIMARY KEY, item_id int REFERENCES item ON DELETE CASCADE)",
)
FILL = (
    "INSERT INTO item SELECT n, 'item ' || n, n / 100.0, now(), '{\"n\": 1}' FROM generate_series(1, 2000) n",
    "INSERT INTO line SELECT n, n FROM generate_series(1, 2000) n",
)


def properties(folder: Path, endpoint: str, stream: str, extractor: str, target: str) -> Path:
    values = {
        "applicationName": "shop", "streamName": stream, "target": target, "extractorName": extractor,
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
        "unitsOfWork": "true", "uowOrder": "dense", "kinesisEndpoint": endpoint, "regionName": "us-east-1",
        "applyMaster": "local[2]", "logTableName": "log", "logPartition": "0",
    }  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


@pytest.fixture
def target(mariadb_server: str) -> Iterator[str]:
    with mariadb_target(mariadb_server) as url:
        yield url


@pytest.fixture
def file(source: SourceSlot, target: str, tmp_path: Path, kinesis: Any, moto_endpoint: str) -> Path:
    kinesis.create_stream(StreamName=source.slot, ShardCount=1)
    extractor = f"{OF_POSTGRESQL} --source {source.url!r} --slot {source.slot} --publication changes"
    return properties(tmp_path, moto_endpoint, source.slot, extractor, target)


def kainite(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


def findings(file: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for one in json.loads(kainite("replicate", "init", "-p", str(file), "--json")[1])["findings"]:
        if one["verdict"] != "ok":
            found.setdefault(one["about"], []).append(one)
    return found


def told(file: Path) -> str:
    return " | ".join(f"{one['found']} -> {one['mend']}" for ones in findings(file).values() for one in ones)


def has_copied(target: str) -> bool:
    with mariadb_session(target) as connection:
        return bool(rows_if_there(connection, "SELECT 1 FROM kainite_load_step WHERE done_at IS NOT NULL"))


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
def test_from_an_empty_database_to_a_live_target_with_a_driver_that_is_killed(
    source: SourceSlot, file: Path, target: str
) -> None:
    run(source.url, *TABLES, *FILL)
    missing = findings(file)["tables"]
    assert [one["found"].split(",")[0] for one in missing[:1]] == ["the target lacks public.item"]
    code, said = kainite("replicate", "init", "-p", str(file), "--write")
    assert "made table public.line" in said
    assert "longer values are refused of name (VARCHAR(255))" in said
    assert code == 0, said
    assert kainite("replicate", "status", "-p", str(file))[0] == 1
    command = [sys.executable, "-m", "kainite", "replicate", "load", "-p", str(file), "--json"]
    with mariadb_session(target) as holder:
        holder.query("LOCK TABLES line READ")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            eventually(lambda: has_copied(target) or first.poll() is not None, 240)
            os.kill(first.pid, signal.SIGKILL)
        holder.query("UNLOCK TABLES")
        [before] = rows_of(holder, "SELECT position, generation FROM kainite_load")
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        assert rows_of(holder, "SELECT position, generation FROM kainite_load") == [(before[0], before[1] + 1)]
        last = json.loads(done.stdout.splitlines()[-1])
        assert (last["state"], last["consistent"], last["rows"]) == ("live", True, 4000)
        query = "SELECT count(*), sum(price), max(name) FROM {}item JOIN {}line ON line.item_id = item.id"
        assert rows_of(holder, query.format("", "")) == run(source.url, query.format("", ""))
    code, said = kainite("replicate", "status", "-p", str(file))
    assert code == 0
    assert "each state from here on is one that the source had" in said


def test_what_is_wrong_is_told_with_the_statement_that_mends_it(source: SourceSlot, file: Path, target: str) -> None:
    run(source.url, *TABLES, "CREATE TABLE odd (id int PRIMARY KEY, span interval, tags text[])",
        "CREATE TABLE bare (id int PRIMARY KEY, a int, b text)", "CREATE TABLE code (c text PRIMARY KEY)")  # fmt: skip
    run_script(target, "CREATE TABLE bare (id int, a smallint NOT NULL, twice int AS (a * 2), must int NOT NULL)"
               " ENGINE = Aria")  # fmt: skip
    run_script(target, "CREATE TABLE code (c varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY)")
    run_script(target, "INSERT INTO code VALUES ('a'); CREATE TRIGGER t AFTER INSERT ON code FOR EACH ROW SET @a = 1")
    found = told(file)
    for part in (
        "the target lacks public.item -> kainite replicate init --write, or: CREATE TABLE `public`.`item` (`id` INT",
        "has no one type for all values of span (interval), tags (text[]) -> with types that you choose",
        "public.bare has the storage engine Aria: a range could not be copied whole -> ALTER TABLE `public`.`bare`",
        "public.bare has no column b", "the target's public.bare has no primary key -> ALTER TABLE",
        "public.bare.a is integer in the source and smallint(6)", "public.bare.must is NOT NULL in the target",
        "public.code.c is part of a key, and utf8mb4_general_ci takes texts for equal",
        "the target is not empty: public.code -> TRUNCATE TABLE `public`.`code`",
    ):  # fmt: skip
        assert part in found, (part, found)
    run_script(target, "DROP TABLE bare")
    found = told(file)
    assert "CREATE TRIGGER t AFTER INSERT ON code" in found
    assert "MariaDB cannot switch it off -> DROP TRIGGER `t`" in found
    code, said = kainite("replicate", "init", "-p", str(file), "--write")
    assert "made no table: columns have types of which you choose MariaDB's" in said
    code, said = kainite("replicate", "load", "-p", str(file))
    assert code == 1
    assert "the load cannot begin: " in said


def test_what_is_in_the_way_of_a_cut_over_is_told_and_one_is_taken_back(
    source: SourceSlot, file: Path, target: str, dynamodb: Any, moto_endpoint: str
) -> None:
    DynamoDBStore(dynamodb, "log").create()
    file.write_text(f"{file.read_text()}dynamoDBEndpoint={moto_endpoint}\n")
    run(source.url, *TABLES, "CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER loud BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION shout()",
        "ALTER TABLE item ALTER id ADD GENERATED BY DEFAULT AS IDENTITY")  # fmt: skip
    assert kainite("replicate", "init", "-p", str(file), "--write")[0] == 0
    words = ("replicate", "cutover", "-p", str(file))
    code, said = kainite(*words, "--json")
    found = json.loads(said)
    assert (code, found["ready"]) == (1, False)
    told = {one["about"]: one for one in found["findings"] if one["verdict"] != "ok"}
    assert told.keys() == {"source", "target", "sequences", "triggers"}
    assert told["target"]["found"] == "it is not live"
    assert told["sequences"]["mend"].startswith("ALTER TABLE `public`.`item` MODIFY `id` INT(11) NOT NULL AUTO_INCREME")
    assert told["triggers"]["found"] == "the target lacks triggers of the source: public.item: loud"
    assert kainite(*words, "--undo") == (0, "the target was not cut over\n")
    with mariadb_session(target) as connection:
        ledger = MariadbLoadLedger(connection, "log/0")
        ledger.create()
        connection.query(of_the_apply_job.CREATE[1])
        rows_of(connection, "INSERT INTO kainite_load (log_partition, generation, state) VALUES ('log/0', 1, 'live')")
        ledger.cut_over(lambda _: None)
    assert kainite(*words) == (0, "the target was cut over before: it may be written\n")
    code, said = kainite("replicate", "status", "-p", str(file))
    assert said.startswith("cut over: ")
    found = told_all(file)
    assert "the target was cut over: nothing is loaded or applied any more" in found
    code, said = kainite(*words, "--undo")
    assert code == 0
    assert "the target is a replica again: units are applied. Triggers that were made in it" in said
    assert "has no binlog that tells whether anybody has written" in said


def told_all(file: Path) -> str:
    return str(json.loads(kainite("replicate", "init", "-p", str(file), "--json")[1])["findings"])


def test_a_role_without_rights_is_told_which_ones(
    source: SourceSlot, file: Path, target: str, mariadb_server: str
) -> None:
    run(source.url, *TABLES[:2])
    user = unique("u").replace("-", "_")
    run_script(target, "CREATE TABLE item (id int PRIMARY KEY, name varchar(255) NOT NULL, price decimal(10,2),"
               " at datetime(6), extra json)")  # fmt: skip
    run_script(mariadb_server, f"CREATE USER {user}@localhost; GRANT SELECT, TRIGGER ON public.* TO {user}@localhost")
    address = urlsplit(target)
    limited = address._replace(netloc=f"{user}@{address.netloc.rpartition('@')[2]}").geturl()
    file.write_text(file.read_text().replace(target, limited))
    try:
        found = told(file)
        assert "may not INSERT, UPDATE, DELETE, DROP on public.item -> GRANT INSERT, UPDATE, DELETE, DROP ON" in found
        assert "may not CREATE, DELETE, INSERT, UPDATE Kainite's own tables in public -> GRANT" in found
    finally:
        run_script(mariadb_server, f"DROP USER {user}@localhost")


@pytest.fixture
def database(mariadb_source_server: str) -> Iterator[str]:
    with source_database(mariadb_source_server) as url:
        execute(
            url,
            "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40), born DATE, raw VARBINARY(20), at TIMESTAMP(3))",
            "CREATE TABLE line (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, item_id INT,"
            " FOREIGN KEY (item_id) REFERENCES item (id) ON DELETE CASCADE)",
            "INSERT INTO item SELECT seq, CONCAT('it\\\\em\\t', seq), IF(seq % 2, '0000-00-00', '2024-02-29'),"
            " UNHEX('00ff27'), '2024-01-01 10:11:12.123' FROM seq_1_to_2000",
            "INSERT INTO line (item_id) SELECT seq FROM seq_1_to_2000",
        )
        yield url


def test_from_mariadb_into_mariadb(
    database: str, mariadb: str, tmp_path: Path, kinesis: Any, moto_endpoint: str
) -> None:
    stream = unique("s")
    kinesis.create_stream(StreamName=stream, ShardCount=1)
    file = properties(tmp_path, moto_endpoint, stream, f"{OF_MARIADB} --source {database}", mariadb)
    assert "the target lacks item -> kainite replicate init --write, or: CREATE TABLE `item`" in told(file)
    code, said = kainite("replicate", "init", "-p", str(file), "--write")
    assert code == 0, said
    assert "made table line" in said
    run_script(mariadb, "ALTER TABLE item MODIFY name VARCHAR(50)")
    assert "item.name is varchar(40) in the source and varchar(50) in the target" in told(file)
    code, said = kainite("replicate", "load", "-p", str(file), "--json")
    assert code == 0, said
    query = "SELECT * FROM item JOIN line ON line.item_id = item.id ORDER BY item.id"
    with mariadb_session(database) as one, mariadb_session(mariadb) as other:
        rows = rows_of(one, query)
        assert len(rows) == 2000
        assert rows_of(other, query) == rows
    code, said = kainite("replicate", "status", "-p", str(file))
    assert code == 0
    assert "consistent point transaction 0 of mariadb-7/source_" in said
    code, said = kainite("verify", "-p", str(file), "--wait", "1")
    assert (code, "no apply job of this log has answered: kainite apply must run" in said) == (1, True)
