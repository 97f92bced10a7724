"""PgBouncer in transaction mode before a test's PostgreSQL, as a process; and another client of its pool.

It is Debian's build (``tools/peers``). It does not run as root, and the server's socket is in a folder of the server's
user alone, so it runs as that one.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from support.waiting import eventually

FOLDER: Final = Path(sys.prefix) / "peers/pgbouncer"
_PORT: Final = 6432
_SCRIPT: Final = """
"$1" "$2" >output 2>&1 &
cat >/dev/null
kill -9 $!
"""
"""The command ends with its input, so it also ends when this process is killed and cleans up nothing."""

_LEFT_BEHIND: Final = """
    SET lock_timeout = 0; SET statement_timeout = 0; SET search_path = elsewhere; SET TimeZone = 'Asia/Tokyo';
    SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'; SET client_encoding = 'LATIN1'; SET array_nulls = off;
    SET extra_float_digits = 0; SET bytea_output = 'escape'; SET xmloption = 'document'"""


@contextmanager
def pgbouncer(url: str, pool_size: int = 1, pool_mode: str = "transaction") -> Iterator[str]:
    """Yields the address of a database through the pooler, while it runs.

    Args:
        url: the database, on a Unix socket.
        pool_size: sessions of the server that all clients share, in turns.
        pool_mode: after what a client gives its session back.
    """
    given = conninfo_to_dict(url)
    folder = Path(tempfile.mkdtemp(prefix="kainite-pb-"))
    settings = {
        "listen_port": _PORT, "unix_socket_dir": folder, "auth_type": "any", "pool_mode": pool_mode,
        "default_pool_size": pool_size, "server_round_robin": 1,
    }  # fmt: skip
    lines = (f"{name} = {value}\n" for name, value in settings.items())
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(f"[databases]\n* = host={given['host']} user=postgres\n[pgbouncer]\n{''.join(lines)}")
    user = Path(str(given["host"])).owner() if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    process = subprocess.Popen(
        ["sh", "-c", _SCRIPT, "sh", _program(folder), configuration], user=user, start_new_session=True,
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(folder)}, stdin=subprocess.PIPE, cwd=folder,
    )  # fmt: skip
    try:
        try:
            eventually(lambda: _listens(folder))
        except AssertionError as error:
            raise AssertionError(f"{error}; PgBouncer said: {(folder / 'output').read_text()}") from error
        yield f"postgresql://postgres@/{given['dbname']}?host={folder}&port={_PORT}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        shutil.rmtree(folder)


def leave_settings_behind(url: str) -> None:
    """Acts as another client of the pool, which sets what it likes and leaves."""
    with psycopg.connect(url, autocommit=True) as client:
        client.execute(_LEFT_BEHIND.encode())


def _program(folder: Path) -> Path:
    """Copies the program and its libraries to where the server's user may read them."""
    assert (FOLDER / "pgbouncer").exists(), "PgBouncer is missing: make peers"
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    folder.chmod(0o755)
    return folder / "pgbouncer"


def _listens(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(folder / f".s.PGSQL.{_PORT}")) == 0
