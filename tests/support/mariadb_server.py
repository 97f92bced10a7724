"""A MariaDB server as a process, on a socket of its own, and what its SQL wants otherwise than PostgreSQL's.

It is Debian's build (``tools/peers``), which is unpacked and not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pymysql

from kainite.targets.mariadb.connection import connect
from support.waiting import eventually

FOLDER: Final = Path(sys.prefix) / "peers/mariadb"
_SCRIPT: Final = """
"$@" >log 2>&1 &
cat >/dev/null
kill -9 $!
"""
"""The command ends with its input, so it also ends when this process is killed and cleans up nothing."""

_LIGHT: Final = (
    "--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=64M", "--innodb-flush-method=nosync", "--skip-log-bin",
)  # fmt: skip

_COLUMNS: Final = re.compile(r"\bREFERENCES (\w+)(?!\s*\(|\w|\.)")


@contextmanager
def mariadb(folder: Path, *options: str) -> Iterator[str]:
    """Runs a server; yields the address of an empty database.

    Args:
        folder: is made, and left as it is at the end.
        options: additions to the server's command line.
    """
    assert (FOLDER / "sbin/mariadbd").exists(), "MariaDB is missing: make peers"
    data, path = folder / "data", folder / "s"
    data.mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(FOLDER / "libraries")}
    server = [
        str(FOLDER / "sbin/mariadbd"), "--no-defaults", f"--basedir={FOLDER}", f"--datadir={data}",
        f"--lc-messages-dir={FOLDER / 'share/mysql'}", *(["--user=root"] if os.geteuid() == 0 else []), *_LIGHT,
    ]  # fmt: skip
    made = subprocess.run(
        [*server, "--bootstrap"], env=environment, cwd=folder, input=_first_tables(), capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr.decode(errors="replace")
    command = [*server, f"--socket={path}", *options]
    process = subprocess.Popen(
        ["sh", "-c", _SCRIPT, "sh", *command], env=environment, stdin=subprocess.PIPE, cwd=folder,
        start_new_session=True,
    )  # fmt: skip
    try:
        eventually(lambda: _listens(path))
        yield f"mariadb://root@/mysql?unix_socket={path}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        shutil.rmtree(data)


def _first_tables() -> bytes:
    """Returns what makes the server's own tables, with a role root that has no password."""
    begin = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
    names = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
    return begin + b"\n".join((FOLDER / f"share/mysql/{name}.sql").read_bytes() for name in names)


def run_script(url: str, script: str) -> None:
    """Executes a script of the tests' common SQL (:func:`in_mariadb`)."""
    with closing(_ansi(url)) as connection, connection.cursor() as cursor:
        cursor.execute(in_mariadb(script))
        while cursor.nextset():
            pass


def drop_database(url: str, name: str) -> None:
    """Drops a database, and ends sessions that a failed test has left in it: their locks would keep it for ever."""
    left = rows_of(url, f"SELECT id FROM information_schema.processlist WHERE db = '{name}'")
    for (session,) in left:
        with suppress(pymysql.MySQLError):  # it may have ended by itself
            run_script(url, f"KILL {session}")
    run_script(url, f"DROP DATABASE {name}")


def rows_of(url: str, query: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query."""
    with closing(_ansi(url)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def in_mariadb(script: str) -> str:
    """Returns a script in which each foreign key names the columns of its parent, which MariaDB asks for."""
    keys = dict(re.findall(r"CREATE TABLE (\w+) \(\s*(\w+)[^,]*? PRIMARY KEY", script))
    keys |= dict(re.findall(r"CREATE TABLE (\w+) \([^;]*?PRIMARY KEY \(([^)]*)\)", script))
    return _COLUMNS.sub(lambda found: f"REFERENCES {found[1]} ({keys[found[1]]})", script)


def _ansi(url: str) -> pymysql.connections.Connection:
    connection = connect(url)
    connection.query("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')")
    return connection


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
