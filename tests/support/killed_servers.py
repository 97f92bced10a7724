"""Database servers that are killed, and begin again with their data."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final

import psutil

from kainite.targets.mariadb.connection import connect
from kainite_demo import mariadb_server, postgres_server
from support.waiting import eventually

WITH_BINLOG: Final = "mariadb with a binlog"
"""The name of a kind, beside postgresql and mariadb."""


class KilledServer:
    """A server of a kind that prepares transactions, in a folder of its own; it runs between start and kill.

    Args:
        kind: postgresql, mariadb, or :data:`WITH_BINLOG`.
    """

    def __init__(self, kind: str) -> None:
        self._postgres = kind == "postgresql"
        self._options = (*mariadb_server.BINLOG, "--sync-binlog=1") if kind == WITH_BINLOG else ()
        self._folder = Path(tempfile.mkdtemp(prefix="kainite-k-"))
        self._data = self._folder / "s"
        self._running = ExitStack()
        self._user: str | None = None
        if self._postgres:
            self._user = postgres_server.made_folder(self._data)
            known = ("--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync")
            postgres_server.run_program(self._data, self._user, "initdb", *known, "--pgdata", str(self._data))
        else:
            mariadb_server.make_data(self._data)

    def start(self) -> str:
        """Starts the server; returns the address of a database there."""
        if self._postgres:
            settings = {"unix_socket_directories": str(self._data), "listen_addresses": "",
                        "max_prepared_transactions": "9"}  # fmt: skip
            return self._running.enter_context(postgres_server.serving(self._data, self._user, settings))
        url = self._running.enter_context(mariadb_server.serving(self._data, *self._options))
        with closing(connect(url)) as connection:
            connection.query("CREATE DATABASE IF NOT EXISTS shop")
        return url.replace("/mysql?", "/shop?")

    def kill(self) -> None:
        """Kills the server, and waits until it is gone."""
        if self._postgres:
            lock = self._data / "postmaster.pid"
            server = psutil.Process(int(lock.read_text().partition("\n")[0]))
            processes = [server, *server.children(recursive=True)]
            for process in processes:
                with suppress(psutil.NoSuchProcess):  # it ends when another one is killed
                    process.kill()
            eventually(lambda: all(map(_is_gone, processes)))
            # A process that nobody waits for keeps its number, and the next server would take it for one that runs.
            for left in (lock, *self._data.glob(".s.PGSQL.*.lock")):
                left.unlink()
        self._running.close()  # which kills one of MariaDB

    def close(self) -> None:
        """Ends the server, if it runs, and removes its data."""
        self._running.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
