"""Runs MySQL servers, of which ``make test-mysql`` has unpacked the programs (``tools/mysql``).

With ``KAINITE_TESTS_ON=mysql`` the fixtures that give a MariaDB give a MySQL: the same tests run on both.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kainite_demo.mariadb_server import BINLOG, listening

IS_MYSQL: Final = os.environ.get("KAINITE_TESTS_ON") == "mysql"
"""Whether tests of MariaDB run on MySQL."""

WITH_GTIDS: Final = (*BINLOG, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
"""Options of a server that is a source."""

_FOLDER: Final = Path(sys.prefix) / "mysql"
_LIGHT: Final = (
    "--skip-networking", "--mysqlx=OFF", "--secure-file-priv=NULL", "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=16M", "--innodb-flush-method=nosync", "--skip-log-bin",
)  # fmt: skip


@contextmanager
def mysql(folder: Path, *options: str) -> Iterator[str]:
    """Runs a server; yields the address of its own database, ``mysql``.

    Args:
        folder: is made; its data are removed at the end.
        options: additions to the server's command line.
    """
    make_data(folder)
    try:
        with serving(folder, *options) as url:
            yield url
    finally:
        shutil.rmtree(folder / "data")
        shutil.rmtree(folder / "tmp")


def make_data(folder: Path) -> None:
    """Makes a server's own tables in a new folder, with a role root that has no password."""
    shutil.copytree(_FOLDER / "data", folder / "data")
    (folder / "tmp").mkdir()


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Runs the server of a folder with data; yields its address, and kills the server."""
    (folder / "tmp").mkdir(exist_ok=True)
    with listening([*_server(folder), *options], _environment(), folder) as url:
        yield url


def _server(folder: Path) -> list[str]:
    return [
        str(_FOLDER / "mysqld"), "--no-defaults", f"--basedir={_FOLDER}", f"--datadir={folder / 'data'}",
        f"--tmpdir={folder / 'tmp'}", f"--lc-messages-dir={_FOLDER / 'share'}",
        *(["--user=root"] if os.geteuid() == 0 else []), *_LIGHT,
    ]  # fmt: skip


def _environment() -> Mapping[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath)}
