"""Runs MariaDB servers for one run, from the programs of a Debian package: installed, or unpacked by ``make peers``.

The server's data and its socket are in a folder of its own; it listens at no port, and keeps nothing for long.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kainite.base.errors import DemoError, MissingExtraError

BINLOG: Final = (
    "--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL", "--server-id=7",
)  # fmt: skip
"""Options of a server that is a source."""

PEERS: Final = Path(sys.prefix) / "peers/mariadb"
"""Where ``make peers`` unpacks the package."""

SYSTEM: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
"""Where an installed one is looked for: servers are not on every user's PATH."""

_LIMIT: Final = 60.0
_LONGEST_SOCKET: Final = 103
_SCRIPT: Final = """
"$@" >log 2>&1 &
cat >/dev/null
{ kill -9 $!; wait; } 2>/dev/null
"""
"""The command ends with its input, so it also ends when this process is killed and cleans up nothing."""

_LIGHT: Final = (
    "--skip-networking", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=64M", "--innodb-flush-method=nosync", "--skip-log-bin",
)  # fmt: skip
_TABLES: Final = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")


@dataclass(frozen=True, slots=True)
class MariadbPrograms:
    """Where a server is.

    Attributes:
        server: the program.
        base: the folder above its files.
        scripts: the folder of the SQL that makes a server's own tables.
        libraries: libraries that are not installed; None where the machine has all.
    """

    server: Path
    base: Path
    scripts: Path
    libraries: Path | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        found = {"PATH": os.environ.get("PATH", os.defpath)}
        return found if self.libraries is None else {**found, "LD_LIBRARY_PATH": str(self.libraries)}


def mariadb_programs() -> MariadbPrograms:
    """Returns where a server is: unpacked, or installed.

    Raises:
        MissingExtraError: there is none.
    """
    if (PEERS / "sbin/mariadbd").exists():
        return MariadbPrograms(PEERS / "sbin/mariadbd", PEERS, PEERS / "share/mysql", PEERS / "libraries")
    found = shutil.which("mariadbd", path=SYSTEM)
    base = Path(found).resolve().parents[1] if found else Path()
    scripts = next((path for name in ("mysql", "mariadb") if (path := base / "share" / name).is_dir()), None)
    if not found or scripts is None or not all((scripts / f"{name}.sql").exists() for name in _TABLES):
        raise MissingExtraError(
            "MariaDB's server is missing, which --source mariadb and --target mariadb run: on Debian or Ubuntu apt-get"
            " install mariadb-server-core; in a checkout make peers unpacks that package, without root"
        )
    return MariadbPrograms(Path(found), base, scripts)


@contextmanager
def mariadb(folder: Path, *options: str) -> Iterator[str]:
    """Runs a server; yields the address of its own database, ``mysql``.

    Args:
        folder: is made; its data are removed at the end.
        options: additions to the server's command line.

    Raises:
        MissingExtraError: there is no server on this machine.
        DemoError: it does not start; the message carries the end of its log.
    """
    make_data(folder)
    try:
        with serving(folder, *options) as url:
            yield url
    finally:
        shutil.rmtree(folder / "data")
        shutil.rmtree(folder / "tmp")


def make_data(folder: Path) -> None:
    """Makes a server's own tables in a new folder, with a role root that has no password; raises as :func:`mariadb`."""
    programs = mariadb_programs()
    if len(str(folder / "s")) > _LONGEST_SOCKET:
        raise DemoError(f"{folder}: too long a path for a socket; set TMPDIR to a shorter one")
    (folder / "data").mkdir(parents=True)
    (folder / "tmp").mkdir()  # of its own: a server that starts removes the temporary tables of all others there
    begin = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
    script = begin + b"\n".join((programs.scripts / f"{name}.sql").read_bytes() for name in _TABLES)
    made = subprocess.run(
        [*_server(programs, folder), "--bootstrap"], env=programs.environment, cwd=folder, input=script,
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise DemoError(f"MariaDB's tables cannot be made: {_last_line(made.stderr)}")


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Runs the server of a folder with data; yields its address, and kills the server; raises as :func:`mariadb`."""
    programs = mariadb_programs()
    (folder / "tmp").mkdir(exist_ok=True)
    with listening([*_server(programs, folder), *options], programs.environment, folder) as url:
        yield url


@contextmanager
def listening(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Runs a server that takes MariaDB's options; yields its address, and kills it.

    Args:
        command: the server, with all options but that of its socket.
        environment: its environment variables.
        folder: where its socket and its log lie.

    Raises:
        DemoError: it does not start; the message carries the end of its log.
    """
    path = folder / "s"
    for left in (path, folder / "s.lock"):  # of one that was killed
        left.unlink(missing_ok=True)
    process = subprocess.Popen(
        ["sh", "-c", _SCRIPT, "sh", *command, f"--socket={path}"],
        env=environment, stdin=subprocess.PIPE, cwd=folder, start_new_session=True,
    )  # fmt: skip
    try:
        _wait_until_it_listens(path, folder / "log")
        yield f"mariadb://root@/mysql?unix_socket={path}"
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_LIMIT)  # closes its input
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _server(programs: MariadbPrograms, folder: Path) -> list[str]:
    return [
        str(programs.server), "--no-defaults", f"--basedir={programs.base}", f"--datadir={folder / 'data'}",
        f"--tmpdir={folder / 'tmp'}", f"--lc-messages-dir={programs.scripts}",
        *(["--user=root"] if os.geteuid() == 0 else []), *_LIGHT,
    ]  # fmt: skip


def _wait_until_it_listens(path: Path, log: Path) -> None:
    deadline = time.monotonic() + _LIMIT
    while not _listens(path):
        if time.monotonic() > deadline:
            raise DemoError(f"MariaDB does not start: {_last_line(log.read_bytes() if log.exists() else b'')}")
        time.sleep(0.02)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _last_line(text: bytes) -> str:
    return (text.decode(errors="replace").strip().splitlines() or ["no log"])[-1]
