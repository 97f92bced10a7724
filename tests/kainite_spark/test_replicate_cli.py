"""``kainite replicate`` as a user runs it; drivers and the processes that copy are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from click.testing import CliRunner

from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.cli.main import main
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.foreign_keys import take_off
from support.postgresql_source import source
from support.replica import replica
from support.replica_processes import ON_SPARK, PROCESSES
from support.replicas import LOG, Loading, run
from support.spark_family import is_worker
from support.waiting import eventually

__all__ = ["source"]
TABLES = """
    DROP TABLE item, note;
    CREATE TABLE item (id int PRIMARY KEY, name text);
    CREATE TABLE line (id int PRIMARY KEY, item_id int REFERENCES item);
"""
FILL = """
    INSERT INTO item SELECT n, 'item ' || n FROM generate_series(1, 2000) n;
    INSERT INTO line SELECT n, n FROM generate_series(1, 2000) n;
"""
_LOADING = "SELECT count(*) FROM kainite_load_table WHERE state = 'loading'"


@pytest.fixture
def file(source: SourceSlot, postgres: str, tmp_path: Path, kinesis: Any, moto_endpoint: str) -> Path:
    kinesis.create_stream(StreamName=source.slot, ShardCount=1)
    values = {
        "applicationName": "shop", "streamName": source.slot, "target": postgres,
        "extractorName": f"{PROGRAM} --source {source.url!r} --slot {source.slot} --publication changes",
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
        "unitsOfWork": "true", "uowOrder": "dense", "kinesisEndpoint": moto_endpoint, "regionName": "us-east-1",
        "applyMaster": PROCESSES, "logTableName": "log", "logPartition": "0",
    }  # fmt: skip
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def kainite(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["replicate", *words])
    return result.exit_code, result.output


@contextmanager
def load(file: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kainite", "replicate", *(words or ("load",)), "-p", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def locked(target: str) -> Iterator[None]:
    """Holds up each step that writes to ``item``."""
    with psycopg.connect(target) as connection:
        connection.execute("LOCK TABLE item IN SHARE MODE")
        yield


def waits(world: Loading) -> bool:
    sessions = "pg_stat_activity WHERE application_name LIKE 'kainite load %'"
    query = f"SELECT count(*) FROM {sessions} AND wait_event_type = 'Lock'"
    return bool(world.in_target(query) != [(0,)])


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return list(filter(is_worker, psutil.Process(process.pid).children(recursive=True)))


def test_the_list_is_printed_with_marks_and_the_exit_code_tells(source: SourceSlot, file: Path) -> None:
    code, output = kainite("init", "-p", str(file))
    assert code == 1
    assert re.search(r"✗ +slot", output)
    assert "→ SELECT pg_create_logical_replication_slot" in output
    code, output = kainite("init", "-p", str(file), "--json")
    found = json.loads(output)
    assert (code, found["ready"]) == (1, False)
    assert {"about", "found", "mend", "verdict"} == set(found["findings"][0])


def test_a_settings_file_is_written_and_then_read(source: SourceSlot, postgres: str, tmp_path: Path) -> None:
    path = tmp_path / "new.properties"
    where = ["--source", source.url.replace(" ", "%20"), "--target", postgres, "--stream", "shop"]
    code, output = kainite("init", "-p", str(path), *where[:4])
    assert code == 1
    assert "give all of --source, --target and --stream" in output
    kainite("init", "-p", str(path), *where)
    assert "streamName = shop" in path.read_text()
    code, output = kainite("init", "-p", str(path), *where)
    assert "is there already" in output


def test_add_makes_the_foreign_keys_that_a_killed_driver_has_left_off(
    source: SourceSlot, postgres: str, file: Path
) -> None:
    world = Loading(ReplicaEnds(source, postgres, LOG), 0)
    world.in_source(TABLES, FILL)
    world.in_target(TABLES.replace("DROP TABLE item, note;", ""))
    assert kainite("init", "-p", str(file), "--write")[0] == 0
    world.load()
    with psycopg.connect(postgres) as target:
        assert take_off(target, LOG, ("public", "line")) == ["public.line line_item_id_fkey"]
    code, output = kainite("add", "line", "-p", str(file))
    assert (code != 0, "public.line is live already" in output) == (True, True)
    assert world.in_target("SELECT convalidated FROM pg_constraint WHERE contype = 'f'") == [(True,)]


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("master", [PROCESSES, pytest.param(ON_SPARK, marks=pytest.mark.long)])
def test_a_killed_driver_and_killed_workers_lose_and_double_nothing(
    source: SourceSlot, postgres: str, file: Path, master: str
) -> None:
    assert f"applyMaster={PROCESSES}\n" in file.read_text()
    file.write_text(file.read_text().replace(PROCESSES, master))
    world = Loading(ReplicaEnds(source, postgres, LOG), 0)
    world.in_source(TABLES, FILL)
    world.in_target(TABLES.replace("DROP TABLE item, note;", ""))
    assert kainite("init", "-p", str(file), "--write")[0] == 0
    assert kainite("status", "-p", str(file))[0] == 1
    with ExitStack() as lock:
        lock.enter_context(locked(postgres))
        with load(file) as first:
            eventually(lambda: waits(world), 240)
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
        before = world.found()
        with load(file) as second:
            eventually(lambda: world.found().generation > before.generation and waits(world), 240)
            workers = workers_of(second)
            assert workers
            for worker in workers:
                worker.kill()
            lock.close()
            output, errors = second.communicate(timeout=200)
    assert second.returncode == 0, errors
    last = json.loads(output.splitlines()[-1])
    assert (last["state"], last["consistent"], last["rows"]) == ("live", True, 4000)
    assert world.found().position == before.position
    assert world.differences() == {}
    code, output = kainite("status", "-p", str(file))
    assert code == 0
    assert "each state from here on is one that the source had" in output
    told = json.loads(kainite("status", "-p", str(file), "--json")[1])
    assert told["consistent"]
    assert {one["about"] for one in told["standbys"]} <= {"failover"}  # other tests of the server may read its WAL


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
def test_tables_are_added_and_loaded_again_while_units_are_applied_and_the_driver_is_killed(
    source: SourceSlot, postgres: str, file: Path
) -> None:
    over = threading.Event()
    with replica(source, postgres, TABLES.replace("DROP TABLE item, note;", "")) as made, ThreadPoolExecutor(1) as pool:
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.in_source(FILL)
        world.load()
        following = pool.submit(made.follow, over)
        try:
            world.in_target("UPDATE item SET name = 'drifted' WHERE id % 3 = 0")
            with psycopg.connect(source.url) as writer, load(file, "reload", "item") as first:
                # The point waits for this one, behind the transaction in which deltas begin to be held.
                writer.execute("DELETE FROM line WHERE id = 5")
                eventually(lambda: world.in_target(_LOADING) == [(1,)], 240)
                os.kill(first.pid, signal.SIGKILL)
                first.wait()
                writer.rollback()
            world.in_source("UPDATE item SET name = 'new' WHERE id < 100", "DELETE FROM line WHERE id > 1990")
            code, output = kainite("status", "-p", str(file))
            assert code == 1
            assert re.search(r"public.item +loading", output)
            assert "foreign key public.line line_item_id_fkey" in output
            run(source.url, "CREATE TABLE more (id int PRIMARY KEY, item_id int REFERENCES item)",
                "INSERT INTO more SELECT n, n FROM generate_series(1, 50) n")  # fmt: skip
            run(postgres, "CREATE TABLE more (id int PRIMARY KEY, item_id int REFERENCES item)")
            with load(file, "reload", "item") as second:
                output, errors = second.communicate(timeout=300)
            assert second.returncode == 0, errors
            assert json.loads(output.splitlines()[-1])["consistent"]
            with load(file, "add", "more") as third:
                output, errors = third.communicate(timeout=300)
            assert third.returncode == 0, errors
            eventually(lambda: world.differences() == {})
            code, output = kainite("add", "more", "-p", str(file))
            assert code == 1
            assert "public.more is live already: kainite replicate reload" in output
        finally:
            over.set()
        following.result()
    assert kainite("status", "-p", str(file))[0] == 0
