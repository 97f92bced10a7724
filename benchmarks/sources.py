"""Measures the extractors: messages a second and processor time a message, PostgreSQL and MariaDB in one run.

Both servers get the same transactions of TPC-B: three updates and an insert. Then each extractor, a process as
``kainite extract`` starts it, is asked until it has given all of them; nothing puts the messages anywhere. With
``--mariadb-binlog PROGRAM`` MariaDB's own reader decodes the same binlog to text.

    python benchmarks/sources.py [--units N] [--rounds N] [--mariadb-binlog PROGRAM] [--json]

The servers' own processor time is not counted. The rounds alternate, so that a busy machine is so for all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import psycopg
from psycopg.conninfo import make_conninfo
from runs.machine import warn_unless_quiet

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.targets.mariadb.connection import connect
from kainite_demo.postgres_server import postgres
from support.mariadb_source import here, mariadb_with_binlog, source_database

MESSAGES_A_UNIT: Final = 5
ACCOUNTS: Final = 1000
_TABLES: Final = (
    "CREATE TABLE account (id int PRIMARY KEY, branch int, balance int, filler char(84))",
    "CREATE TABLE teller (id int PRIMARY KEY, branch int, balance int, filler char(84))",
    "CREATE TABLE branch (id int PRIMARY KEY, balance int, filler char(88))",
    "CREATE TABLE history (id int PRIMARY KEY, teller int, branch int, account int, delta int, filler char(22))",
)


@dataclass(frozen=True)
class Measured:
    """A round of one reader."""

    reader: str
    messages_a_second: float
    micros_a_message: float


def transaction(number: int) -> str:
    """Returns the statements of a transaction."""
    account, teller = 1 + number * 7919 % ACCOUNTS, 1 + number % 10
    return (
        f"BEGIN; UPDATE account SET balance = balance + {number} WHERE id = {account};"
        f" UPDATE teller SET balance = balance + {number} WHERE id = {teller};"
        f" UPDATE branch SET balance = balance + {number} WHERE id = 1;"
        f" INSERT INTO history VALUES ({number}, {teller}, 1, {account}, {number}, 'x'); COMMIT"
    )


def first_rows() -> list[str]:
    accounts = ", ".join(f"({n}, 1, 0, 'x')" for n in range(1, ACCOUNTS + 1))
    tellers = ", ".join(f"({n}, 1, 0, 'x')" for n in range(1, 11))
    return [
        f"INSERT INTO account VALUES {accounts}",
        f"INSERT INTO teller VALUES {tellers}",
        "INSERT INTO branch VALUES (1, 0, 'x')",
    ]


def filled_postgresql(server: str, units: int) -> tuple[list[str], dict[str, Any]]:
    """Writes the transactions; returns the extractor's command and where it begins."""
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE DATABASE bench")
    source = SourceSlot(make_conninfo(server, dbname="bench"), "bench", "bench")
    with psycopg.connect(source.url, autocommit=True) as connection:
        for statement in (*_TABLES, *first_rows(), "CREATE PUBLICATION bench FOR ALL TABLES"):
            connection.execute(statement.encode())
        with create_slot(source) as slot:
            begin = Offset(slot.lsn, 0).as_json()
        for number in range(units):
            connection.execute(transaction(number).encode())
    options = ["--source", source.url, "--slot", "bench", "--publication", "bench"]
    return [str(Path(sysconfig.get_path("scripts"), "kainite-extract-postgresql")), *options], begin


def filled_mariadb(url: str, units: int) -> tuple[list[str], dict[str, Any]]:
    """Writes the transactions; returns the extractor's command and where it begins."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in (*_TABLES, *first_rows()):
            cursor.execute(statement)
        begin = here(url)
        for number in range(units):
            cursor.execute(transaction(number))
            while cursor.nextset():
                pass
    return [str(Path(sysconfig.get_path("scripts"), "kainite-extract-mysql")), "--source", url], begin


def extracted(reader: str, command: Sequence[str], begin: dict[str, Any], units: int) -> Measured:
    """Asks an extractor until it has given all transactions; the same place is stored all the time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), 0.0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        offset = begin
        while offset["number"] < units:
            process.stdin.write(orjson.dumps({"start": offset, "end": None, "stored": begin}) + b"\n")
            process.stdin.flush()
            answer = b""
            while not answer.endswith(b"\0"):
                answer += os.read(process.stdout.fileno(), 2**20)
            began = began or time.perf_counter()
            last = answer[:-1].rstrip(b"\n").rpartition(b"\n")[2]
            offset = orjson.loads(last)["offset"] if last.startswith(b'{"offset"') else offset
        seconds = time.perf_counter() - began
        process.stdin.close()
    return _measured(reader, before, seconds, units)


def read_by_mariadb_binlog(program: str, url: str, begin: dict[str, Any], units: int) -> Measured:
    """Lets MariaDB's own reader decode the binlog."""
    socket = url.partition("unix_socket=")[2]
    command = [
        program, "--no-defaults", f"--socket={socket}", "--user=root", "--read-from-remote-server", "--verbose",
        "--base64-output=DECODE-ROWS", f"--start-position={begin['position']}", begin["file"],
    ]  # fmt: skip
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return _measured("mariadb-binlog", before, time.perf_counter() - began, units)


def _measured(reader: str, before: resource.struct_rusage, seconds: float, units: int) -> Measured:
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    messages = units * MESSAGES_A_UNIT
    return Measured(reader, messages / seconds, processor / messages * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mariadb-binlog", metavar="PROGRAM")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    with (
        tempfile.TemporaryDirectory(prefix="kainite-sources-") as folder,
        postgres(Path(folder, "pg"), wal_level="logical", fsync="off") as server,
        mariadb_with_binlog(Path(folder, "ma")) as own,
        source_database(own) as url,
    ):
        of_postgresql, of_mariadb = filled_postgresql(server, options.units), filled_mariadb(url, options.units)
        readers: list[Callable[[], Measured]] = [
            lambda: extracted("kainite-extract-postgresql", *of_postgresql, options.units),
            lambda: extracted("kainite-extract-mysql", *of_mariadb, options.units),
        ]
        if options.mariadb_binlog:
            readers.append(lambda: read_by_mariadb_binlog(options.mariadb_binlog, url, of_mariadb[1], options.units))
        found = [read() for _ in range(options.rounds) for read in readers]
    if options.json:
        print(json.dumps([asdict(one) for one in found]))
        return
    for name in dict.fromkeys(one.reader for one in found):
        rates = [one.messages_a_second for one in found if one.reader == name]
        micros = [one.micros_a_message for one in found if one.reader == name]
        print(
            f"{name:28} {statistics.median(rates):9,.0f} messages/s {statistics.median(micros):7.1f} µs CPU a message"
        )


if __name__ == "__main__":
    main()
