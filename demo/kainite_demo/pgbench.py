"""Creates, fills and copies pgbench's tables, and builds the command of pgbench, the source application (TPC-B).

Each of its transactions updates an account, a teller and a branch by the same amount and inserts
a row with that amount into the history, a table without a key. So the three sums of
balances and the sum of history's deltas are equal at any moment.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import psycopg

from kainite.base.errors import DemoError
from kainite_demo.postgres_server import programs

TABLES = ("pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history")
_COPY_LIMIT = 120.0


def create_tables(url: str) -> None:
    """Creates the tables with primary and foreign keys, without rows; drops older ones."""
    _initialize(url, "dtpf", scale=1)


def fill(url: str, scale: int) -> None:
    """Creates tables with ``scale`` branches, 10 tellers and 100,000 accounts each, then primary and foreign keys."""
    _initialize(url, "dtgvpf", scale)


def fill_tables(url: str, scale: int) -> None:
    """Fills tables that are there, as :func:`fill` does."""
    _initialize(url, "g", scale)


def publish(url: str, publication: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE PUBLICATION {publication} FOR TABLE {', '.join(TABLES)}")


def copy_tables(source: str, target: str, snapshot: str) -> None:
    """Copies the rows that ``snapshot`` sees, and updates the target's statistics.

    The copy skips the checks of foreign keys, because they hold in the source.

    Raises:
        DemoError: a table could not be copied.
    """
    see = ["BEGIN ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'"]
    for table in TABLES:
        out = _psql(source, [*see, f"COPY {table} TO STDOUT (FORMAT binary)"])
        into = _psql(target, ["SET session_replication_role = replica", f"COPY {table} FROM STDIN (FORMAT binary)"])
        _pipe(out, into, f"copying {table}")
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("ANALYZE")


def run_command(url: str, clients: int, seconds: int, rate: int, seed: int) -> list[str]:
    """Returns pgbench's command line for a run of TPC-B at ``rate`` transactions a second."""
    options = {"client": clients, "time": seconds, "rate": rate, "random-seed": seed, "protocol": "prepared"}
    program = str(programs() / "pgbench")
    return [program, "--no-vacuum", *(f"--{name}={value}" for name, value in options.items()), url]


def _initialize(url: str, steps: str, scale: int) -> None:
    program = str(programs() / "pgbench")
    command = [program, "--initialize", "--quiet", f"--init-steps={steps}", f"--scale={scale}", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"pgbench --initialize failed: {_last_line(done.stderr)}")


def _psql(url: str, commands: Sequence[str]) -> list[str]:
    parts = [part for command in commands for part in ("--command", command)]
    return [str(programs() / "psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *parts, url]


def _pipe(out: Sequence[str], into: Sequence[str], what: str) -> None:
    with subprocess.Popen(out, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        done = subprocess.run(
            into, stdin=reader.stdout, capture_output=True, text=True, timeout=_COPY_LIMIT, check=False
        )
        reader_errors = reader.communicate(timeout=_COPY_LIMIT)[1]
    if reader.returncode or done.returncode:
        raise DemoError(f"{what} failed: {_last_line(reader_errors + done.stderr)}")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
