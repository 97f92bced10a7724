"""A source and a target with pgbench's tables, for tests of what the demo looks at in them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kainite.base.errors import DemoError
from kainite.capture.postgresql.replication import SourceSlot
from kainite_demo import pgbench
from kainite_demo.watching import Watching
from support.waiting import eventually

LIMIT = 20.0
BRANCH = "INSERT INTO pgbench_branches VALUES (1, 0)"
TELLER = "INSERT INTO pgbench_tellers VALUES (1, 1, 0)"
ACCOUNT = "INSERT INTO pgbench_accounts VALUES (1, 1, 0)"
WHOLE = (
    "UPDATE pgbench_branches SET bbalance = bbalance + 7",
    "UPDATE pgbench_tellers SET tbalance = tbalance + 7",
    "UPDATE pgbench_accounts SET abalance = abalance + 7",
    "INSERT INTO pgbench_history VALUES (1, 1, 1, 7, now())",
)


@pytest.fixture
def target(postgres_server: str, source: SourceSlot) -> Iterator[str]:
    """Gives a second database; source and target have pgbench's tables."""
    name = f"{source.slot}_target"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    url = make_conninfo(postgres_server, dbname=name)
    pgbench.create_tables(url)
    pgbench.create_tables(source.url)
    yield url
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement)


def failure_of(watching: Watching) -> str:
    """Waits until the watching has failed; returns why."""
    found: list[str] = []

    def failed() -> bool:
        try:
            watching.check()
        except DemoError as failure:
            found.append(str(failure))
        return bool(found)

    eventually(failed)
    return found[0]
