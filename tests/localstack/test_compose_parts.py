"""The parts of ``localstack/compose.yaml`` without Docker: init script, tables, settings and commands, on real servers.

What is not run is what only Docker does: building the images and starting them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from kainite.log.views.unit_table import read_rows
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "localstack"
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]
LIMIT = 120.0


@pytest.fixture
def name() -> str:
    """Gives the name of stream and application; other tests share this LocalStack."""
    return unique("compose")


def environment(service: str, name: str, endpoint: str, target: str) -> dict[str, str]:
    """Returns the environment that Compose sets, with this machine's paths and addresses."""
    moved = {
        "http://localstack:4566": endpoint,
        "postgresql://kainite@target:5432/warehouse": target,
        "kainite-processor-": f"{shlex.quote(sysconfig.get_path('scripts'))}/kainite-processor-",
    }
    set_there = dict(SERVICES[service]["environment"])
    for there, here in moved.items():
        set_there = {key: value.replace(there, here) for key, value in set_there.items()}
    own = {"KAINITE_STREAM_NAME": name, "KAINITE_APPLICATION_NAME": name, "KAINITE_METRICS_PORT": "0"}
    return {**os.environ, **set_there, **own}


def command(service: str) -> list[str]:
    properties = str(ROOT / "properties/localstack.properties")
    given = [properties if word == "/etc/kainite/kainite.properties" else word for word in SERVICES[service]["command"]]
    return [sys.executable, "-m", "kainite", *given]


def run_init_script(name: str, endpoint: str) -> None:
    own = {"AWS_ENDPOINT_URL": endpoint, "STREAM_NAME": name, "CHANGES": str(FOLDER / "changes.jsonl")}
    script = [sys.executable, str(FOLDER / "init/changes.py")]
    subprocess.run(script, env={**os.environ, **own}, timeout=LIMIT, check=True)


@contextmanager
def daemon(environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as errors:
        process = subprocess.Popen(command("daemon"), env=environment, stderr=errors)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT)


@pytest.mark.xdist_group("spark")
def test_what_the_init_script_puts_comes_into_the_target(
    endpoint: str, name: str, dynamodb: Any, postgres: str, tmp_path: Path
) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute((FOLDER / "target.sql").read_bytes())
    run_init_script(name, endpoint)
    store = DynamoDBStore(dynamodb, f"{name}-log")
    store.create()

    with daemon(environment("daemon", name, endpoint, postgres), tmp_path / "log") as process:
        eventually(lambda: process.poll() is not None or len(units(store)) == 3, LIMIT)
        assert process.poll() is None, (tmp_path / "log").read_text()
    once = [*command("apply"), "--once"]
    applied = subprocess.run(
        once,
        env=environment("apply", name, endpoint, postgres),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert applied.returncode == 0, applied.stderr
    assert units(store) == ["T-1", "T-2", "T-3"], "not in the source's order"
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT * FROM customer").fetchall() == [(1, "Käthe")]
        assert connection.execute("SELECT * FROM orders").fetchall() == [(10, 1, Decimal("13.00"))]


def units(store: DynamoDBStore) -> list[str]:
    """Returns the dispatched units in the log's order; those that are being collected are not among them."""
    return [row.uow for row in read_rows(store, "0") if row.id is not None] if store.read_head("0") else []
