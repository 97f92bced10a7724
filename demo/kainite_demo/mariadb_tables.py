"""Makes and fills pgbench's tables in MariaDB, with the rows that ``pgbench --initialize`` makes in PostgreSQL."""

from __future__ import annotations

from contextlib import closing

from kainite.targets.mariadb.connection import connect

_KEY = "hid bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, "


def make_database(server: str, name: str) -> str:
    """Makes an empty database; returns its address.

    Args:
        server: the address of the server's own database.
        name: of the database.
    """
    _execute(server, f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    return server.replace("/mysql?", f"/{name}?")


def create_tables(url: str, *, history_has_key: bool) -> None:
    """Creates the tables with primary and foreign keys, without rows.

    Args:
        url: the database.
        history_has_key: whether the history has a primary key, ``hid``: the binlog says of no other table which row
            was changed.
    """
    key = _KEY if history_has_key else ""
    branch = "bid int, FOREIGN KEY (bid) REFERENCES pgbench_branches (bid)"
    _execute(
        url,
        "CREATE TABLE pgbench_branches (bid int NOT NULL PRIMARY KEY, bbalance int, filler char(88))",
        f"CREATE TABLE pgbench_tellers (tid int NOT NULL PRIMARY KEY, tbalance int, filler char(84), {branch})",
        f"CREATE TABLE pgbench_accounts (aid int NOT NULL PRIMARY KEY, abalance int, filler char(84), {branch})",
        f"CREATE TABLE pgbench_history ({key}tid int, aid int, delta int, mtime datetime(6), filler char(22), {branch},"
        " FOREIGN KEY (tid) REFERENCES pgbench_tellers (tid), FOREIGN KEY (aid) REFERENCES pgbench_accounts (aid))",
    )


def fill(url: str, scale: int) -> None:
    """Fills the tables with ``scale`` branches, 10 tellers and 100,000 accounts each."""
    _execute(
        url,
        f"INSERT INTO pgbench_branches (bid, bbalance) SELECT seq, 0 FROM seq_1_to_{scale}",
        "INSERT INTO pgbench_tellers (tid, bid, tbalance)"
        f" SELECT seq, (seq - 1) DIV 10 + 1, 0 FROM seq_1_to_{10 * scale}",
        "INSERT INTO pgbench_accounts (aid, bid, abalance, filler)"
        f" SELECT seq, (seq - 1) DIV 100000 + 1, 0, '' FROM seq_1_to_{100_000 * scale}",
    )


def _execute(url: str, *statements: str) -> None:
    with closing(connect(url)) as connection:
        for statement in statements:
            connection.query(statement)
