"""``kainite replicate`` with a MariaDB source, as a user runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from kainite.capture.mysql.command import PROGRAM
from kainite.cli.main import main
from kainite.store.dynamodb import DynamoDBStore
from support.mariadb_source import execute, source_database
from support.names import unique
from support.replicas import run
from support.waiting import eventually

SOURCE = (
    "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40), born DATE)",
    "CREATE TABLE line (id BIGINT UNSIGNED PRIMARY KEY, item_id INT, FOREIGN KEY (item_id) REFERENCES item (id)"
    " ON DELETE CASCADE)",
    "INSERT INTO item SELECT seq, CONCAT('item ', seq), '2024-02-29' FROM seq_1_to_2000",
    "INSERT INTO line SELECT seq, seq FROM seq_1_to_2000",
)
TARGET = (
    "CREATE TABLE item (id int PRIMARY KEY, name text, born date)",
    "CREATE TABLE line (id numeric(20) PRIMARY KEY, item_id int REFERENCES item ON DELETE CASCADE)",
)


@pytest.fixture
def database(mariadb_source_server: str) -> Iterator[str]:
    with source_database(mariadb_source_server) as url:
        execute(url, *SOURCE)
        yield url


@pytest.fixture
def file(database: str, postgres: str, tmp_path: Path, kinesis: Any, moto_endpoint: str) -> Path:
    stream = unique("s")
    kinesis.create_stream(StreamName=stream, ShardCount=1)
    values = {
        "applicationName": "shop", "streamName": stream, "target": postgres,
        "extractorName": f"{PROGRAM} --source {database}", "extractorMode": "cyclic",
        "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset", "unitsOfWork": "true",
        "uowOrder": "dense", "kinesisEndpoint": moto_endpoint, "regionName": "us-east-1",
        "logTableName": "log", "logPartition": "0",
    }  # fmt: skip
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def kainite(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


def findings(file: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for one in json.loads(kainite("replicate", "init", "-p", str(file), "--json")[1])["findings"]:
        if one["verdict"] != "ok":
            found.setdefault(one["about"], []).append(one)
    return found


def test_from_nothing_to_a_live_target(file: Path, postgres: str) -> None:
    found = findings(file)
    assert "the target lacks item, line" in found["tables"][0]["found"]
    assert '{"file":"binlog.' in found["offset file"][0]["mend"]
    run(postgres, *TARGET)
    code, told = kainite("replicate", "init", "-p", str(file), "--write")
    assert "made offset file" in told
    assert code == 0, told
    assert {"dates", "foreign keys"} & findings(file).keys() == {"dates"}
    assert kainite("replicate", "status", "-p", str(file))[0] == 1
    code, told = kainite("replicate", "load", "-p", str(file), "--json")
    assert code == 0, told
    assert json.loads(told.splitlines()[-1])["state"] == "live"
    assert run(postgres, "SELECT count(*), max(name) FROM item JOIN line ON item_id = item.id") == [(2000, "item 999")]
    code, told = kainite("replicate", "status", "-p", str(file))
    assert code == 0
    assert "consistent point transaction 0 of mariadb-7/source_" in told
    assert kainite("replicate", "load", "-p", str(file))[0] == 0  # there is nothing to do
    offset = file.with_name("shop.offset")
    fields = json.loads(offset.read_bytes())
    fields["start"]["options"] = {"tables": {"line": 0, "item": 5}, "truncate": "fail"}
    offset.write_text(json.dumps(fields))
    code, told = kainite("replicate", "status", "-p", str(file), "--json")
    status = json.loads(told)
    assert (code, status["consistent"], len(status["gaps"])) == (1, False, 1)
    assert "public.item was copied as of transaction 0" in status["gaps"][0]["found"]
    code, told = kainite("replicate", "status", "-p", str(file))
    assert (code, "kainite replicate reload public.item" in " ".join(told.split())) == (1, True)


def test_what_is_wrong_is_told_with_what_mends_it(file: Path, database: str, postgres: str) -> None:
    run(postgres, TARGET[0], "CREATE TABLE line (id bigint PRIMARY KEY, item_id smallint)",
        "INSERT INTO line VALUES (1, 1)")  # fmt: skip
    execute(database, "CREATE TABLE bare (id INT)", "ALTER TABLE item ADD COLUMN twice INT", "CREATE TABLE more (id INT"
            " PRIMARY KEY) ENGINE=MyISAM")  # fmt: skip
    found = findings(file)
    told = " | ".join(f"{one['found']} -> {one['mend']}" for ones in found.values() for one in ones)
    for part in (
        "bare: it has no primary key; ALTER TABLE", "more: its engine MyISAM has no transactions",
        "the target lacks bare, more", "public.item has no column twice",
        "public.line.id is bigint(20) unsigned in the source and bigint", "public.line.item_id is int(11)",
        "changes rows in the source of which its binlog says nothing", "the target is not empty: public.line",
        "a date without a day, is refused: public.item.born",
    ):  # fmt: skip
        assert part in told, part
    code, told = kainite("replicate", "load", "-p", str(file))
    assert code == 1
    assert "the load cannot begin: " in told


def test_what_takes_postgresql_targets_alone_refuses_mariadb_in_one_line(file: Path, database: str) -> None:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("target=")]
    file.write_text("\n".join([*lines, f"target={database}", ""]))
    code, told = kainite("verify", "-p", str(file))
    assert code == 1
    assert "this takes PostgreSQL targets alone: into MariaDB there are" in told
    assert len(told.strip().splitlines()) == 1


def test_what_is_in_the_way_of_a_cut_over_is_told(file: Path, postgres: str, dynamodb: Any, moto_endpoint: str) -> None:
    log = unique("log")
    DynamoDBStore(dynamodb, log).create()
    settings = file.read_text().replace("logTableName=log\n", f"logTableName={log}\n")
    file.write_text(f"{settings}dynamoDBEndpoint={moto_endpoint}\n")
    run(postgres, *TARGET)
    code, told = kainite("replicate", "cutover", "-p", str(file), "--json")
    found = json.loads(told)
    assert (code, found["ready"]) == (1, False)
    wrong = {one["about"]: one for one in found["findings"] if one["verdict"] == "wrong"}
    assert wrong.keys() - {"sessions"} == {"source", "binlog", "target"}  # other tests may have prepared transactions
    assert wrong["source"]["mend"].startswith("SET GLOBAL read_only = 1")
    assert "shop.offset" in wrong["binlog"]["found"]


def test_a_target_of_another_kind_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_text(file.read_text() + f"target = sqlite:///{tmp_path / 'file'}\n")
    lines = [line for line in file.read_text().splitlines() if not line.startswith("target=")]
    file.write_text("\n".join(lines) + "\n")
    for words in (("init",), ("load",), ("status",)):
        code, told = kainite("replicate", *words, "-p", str(file))
        assert code == 1
        assert "copies from MariaDB into targets that begin with postgresql:// or mariadb://, and no others" in told


@pytest.mark.timeout(180)
def test_a_command_that_is_killed_goes_on(file: Path, postgres: str) -> None:
    run(postgres, *TARGET)
    assert kainite("replicate", "init", "-p", str(file), "--write")[0] == 0
    command = [sys.executable, "-m", "kainite", "replicate", "load", "-p", str(file)]
    with psycopg.connect(postgres) as holder:
        holder.execute("LOCK TABLE line IN SHARE MODE")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                eventually(lambda: has_copied(postgres, "item") or process.poll() is not None)
            finally:
                process.send_signal(signal.SIGKILL)
                process.communicate()
    before = run(postgres, "SELECT snapshot, position FROM kainite_load")
    code, told = kainite("replicate", "load", "-p", str(file))
    assert code == 0, told
    assert run(postgres, "SELECT position, generation FROM kainite_load") == [(before[0][1], 2)]
    assert run(postgres, "SELECT count(*) FROM line") == [(2000,)]


def has_copied(postgres: str, table: str) -> bool:
    if run(postgres, "SELECT to_regclass('kainite_load_step')") == [(None,)]:
        return False
    query = f"SELECT count(*) FROM kainite_load_step WHERE table_name = '{table}' AND done_at IS NOT NULL"
    return bool(run(postgres, query) == [(1,)])
