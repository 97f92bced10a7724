"""A server of MariaDB's is found, unpacked or installed, and what keeps it from running is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import DemoError, MissingExtraError
from kainite_demo import mariadb_server
from kainite_demo.mariadb_server import mariadb, mariadb_programs


def installed(folder: Path, *, scripts: bool) -> str:
    """Makes what an installed package has; returns the folder of its program."""
    (folder / "sbin").mkdir()
    program = folder / "sbin/mariadbd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    share = folder / "share/mysql"
    share.mkdir(parents=True)
    names = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
    for name in names if scripts else ():
        (share / f"{name}.sql").write_text("")
    return str(folder / "sbin")


def test_an_installed_server_is_taken_where_none_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "PEERS", tmp_path / "none")
    monkeypatch.setattr(mariadb_server, "SYSTEM", installed(tmp_path, scripts=True))
    found = mariadb_programs()
    assert (found.base, found.scripts, found.libraries) == (tmp_path, tmp_path / "share/mysql", None)
    assert "LD_LIBRARY_PATH" not in found.environment


def test_a_server_without_its_scripts_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "PEERS", tmp_path / "none")
    monkeypatch.setattr(mariadb_server, "SYSTEM", installed(tmp_path, scripts=False))
    with pytest.raises(MissingExtraError, match="apt-get install mariadb-server-core"):
        mariadb_programs()


def test_a_path_that_is_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="too long a path"), mariadb(tmp_path / ("x" * 100)):
        pass


def test_a_server_that_does_not_start_is_told_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "PEERS", tmp_path / "none")
    monkeypatch.setattr(mariadb_server, "SYSTEM", installed(tmp_path, scripts=True))
    monkeypatch.setattr(mariadb_server, "_LIMIT", 0.2)
    with pytest.raises(DemoError, match="MariaDB does not start"), mariadb(tmp_path / "server"):
        pass
