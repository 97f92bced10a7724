"""docs/replicate.md, carried out command by command: from nothing to a live replica, and to the cut-over."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ledger import LoadState
from kainite_demo.postgres_server import programs
from support.replicas import Loading, run
from support.waiting import eventually

PAGE: Final = Path(__file__).parents[2] / "docs" / "replicate.md"
LIMIT: Final = 200.0
TABLES: Final = """
    CREATE TABLE customer (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL);
    CREATE TABLE invoice (id bigserial PRIMARY KEY, customer_id int NOT NULL REFERENCES customer, total numeric);
    CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name := upper(NEW.name); RETURN NEW; END';
    CREATE TRIGGER loud BEFORE INSERT ON customer FOR EACH ROW EXECUTE FUNCTION public.shout();
    INSERT INTO customer (name) SELECT 'customer ' || n FROM generate_series(1, 500) n;
    INSERT INTO invoice (customer_id, total) SELECT id, id * 1.5 FROM customer;
"""


@pytest.fixture
def world(postgres_server: str, postgres: str) -> Iterator[Loading]:
    """Gives the page's database ``shop``, with tables, and an empty target."""
    shop = postgres_server.replace("/postgres?", "/shop?")
    run(postgres_server, "CREATE DATABASE shop")
    run(shop, TABLES)
    yield Loading(ReplicaEnds(SourceSlot(shop, "shop_changes", "shop_changes"), postgres, "shop_changes-log/0"), 0)
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE database = 'shop'")
        admin.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = 'shop'")
        admin.execute("DROP DATABASE shop WITH (FORCE)")


class Shell:
    """Runs the page's blocks.

    Args:
        world: both databases, which stand in for those of the page.
        folder: where the commands are run.
    """

    def __init__(self, world: Loading, folder: Path) -> None:
        self._urls = {
            "postgresql://kainite@a/shop": shlex.quote(world.ends.source.url),
            "postgresql://kainite@b/shop": shlex.quote(world.ends.target),
        }
        self._folder = folder
        path = os.pathsep.join([sysconfig.get_path("scripts"), str(programs()), os.environ["PATH"]])
        self._env = {**os.environ, "PATH": path, "SOURCE": world.ends.source.url}

    def run(self, commands: str, expected: int = 0) -> str:
        for named, here in self._urls.items():
            commands = commands.replace(named, here)
        done = subprocess.run(["sh", "-eu", "-c", commands], cwd=self._folder, env=self._env, capture_output=True,
                              text=True, timeout=LIMIT, check=False)  # fmt: skip
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        """Runs a command of Kainite's that does not end by itself."""
        with (self._folder / f"{command}.log").open("wb") as log:
            process = psutil.Popen(
                [sys.executable, "-m", "kainite", command, "-p", "shop.properties"],
                cwd=self._folder, env=self._env, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            yield
        finally:
            family = [process, *process.children(recursive=True)] if process.is_running() else []
            for one in family:
                with suppress(psutil.NoSuchProcess):  # it may end with its parent
                    one.terminate()
            _, left = psutil.wait_procs(family, timeout=30)
            for one in left:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            psutil.wait_procs(left, timeout=30)


def blocks(section: str) -> list[str]:
    """Returns a section's shell blocks."""
    (text,) = re.findall(rf"^## {section}\n(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    found = re.findall(r"^( *)```sh\n(.*?)^ *```", text, re.S | re.M)
    return ["\n".join(line.removeprefix(indent) for line in block.splitlines()) for indent, block in found]


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_from_nothing_to_the_cut_over(world: Loading, kinesis: Any, moto_endpoint: str, tmp_path: Path) -> None:
    shell = Shell(world, tmp_path)
    first, write, load = blocks("From nothing to a replica")
    close, cut_over = blocks("The cut-over")

    assert "shop_changes does not exist" in shell.run(first, expected=1)
    with (tmp_path / "shop.properties").open("a") as file:
        file.write(f"kinesisEndpoint = {moto_endpoint}\ndynamoDBEndpoint = {moto_endpoint}\nregionName = us-east-1\n"
                   "applyMaster = local[2]\nidleTimeBetweenReadsInMillis = 100\nmetricsPort = 0\n")  # fmt: skip
    create, write = write.split("\n", 1)
    options = dict(zip(words := shlex.split(create)[3:], words[1:], strict=False))
    kinesis.create_stream(StreamName=options["--stream-name"], ShardCount=int(options["--shard-count"]))
    told = shell.run(write)
    assert "made 2 tables; 4 keys, indexes and the like follow behind the rows" in told
    world.in_source("UPDATE customer SET name = 'before the load' WHERE id = 1")
    assert "live: 2 of 2 ranges, 1,000 rows" in shell.run(load)

    with ExitStack() as services:
        for command in ("extract", "run", "apply"):
            services.enter_context(shell.running(command))
        world.in_source("INSERT INTO customer (name) VALUES ('new')", "DELETE FROM invoice WHERE id < 10")
        eventually(lambda: world.differences() == {}, 240)
        (compare,) = blocks("Comparing both sides")[:1]
        assert "equal: 2 tables" in shell.run(compare)
        run(world.ends.target, "UPDATE invoice SET total = 0 WHERE id IN (20, 21)")
        dry, repair = blocks("Comparing both sides")[1].splitlines()
        assert "would overwrite 2 rows of public.invoice" in shell.run(dry, expected=1)
        assert "sets 2 rows to what the source has: committed" in shell.run(f"{repair} --yes")
        assert world.differences() == {}
        assert "changed by hand" in shell.run("kainite log history -p shop.properties")
        refused = shell.run("kainite replicate cutover -p shop.properties --check", expected=1)
        assert "database shop takes writes" in refused
        world.in_source("UPDATE customer SET name = 'last' WHERE id = 2")
        shell.run(close)
        done = shell.run(cut_over)
        assert "2 sequences were set, 1 triggers and rules switched on" in done
        assert world.differences() == {}
        assert world.in_target("INSERT INTO customer (name) VALUES ('mine') RETURNING id, name") == [(502, "MINE")]
        assert "was cut over before" in shell.run(cut_over)
    assert world.found().state is LoadState.CUT_OVER
    assert "cut over" in shell.run("kainite replicate status -p shop.properties")
    shell.run("kainite replicate cutover -p shop.properties --undo")
    assert world.found().state is LoadState.LIVE
    kinesis.delete_stream(StreamName=options["--stream-name"])
