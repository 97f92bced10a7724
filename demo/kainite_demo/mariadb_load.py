"""The source application on MariaDB: the transactions of ``pgbench`` (TPC-B), as a program.

    python -m kainite_demo.mariadb_load --source URL --clients 8 --seconds 30 --rate 100 --scale 20 --seed 1

Transactions begin at the moments of a Poisson process, as pgbench's do with ``--rate``: a client that is late takes the
next moment at once. A transaction that the server refuses for a lock is tried again until it commits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random

import click
import pymysql

from kainite.targets.mariadb.connection import connect

_LOCKED = (1205, 1213)


class _Moments:
    """The moments at which transactions begin, for all clients together."""

    def __init__(self, rate: int, seconds: float, random: Random) -> None:
        self._lock = threading.Lock()
        self._moments = self._all(rate, seconds, random)

    def next(self) -> float | None:
        """Returns the next moment, by the monotonic clock; None at the end."""
        with self._lock:
            return next(self._moments, None)

    @staticmethod
    def _all(rate: int, seconds: float, random: Random) -> Iterator[float]:
        at = time.monotonic()
        end = at + seconds
        while (at := at + random.expovariate(rate)) < end and time.monotonic() < end:
            yield at


@click.command()
@click.option("--source", required=True)
@click.option("--clients", required=True, type=int)
@click.option("--seconds", required=True, type=float)
@click.option("--rate", required=True, type=int)
@click.option("--scale", required=True, type=int)
@click.option("--seed", required=True, type=int)
def main(source: str, clients: int, seconds: float, rate: int, scale: int, seed: int) -> None:
    """Makes transactions of TPC-B in a MariaDB database."""
    moments = _Moments(rate, seconds, Random(seed))
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(_client, source, moments, scale, Random(seed + each)) for each in range(clients)]:
            done.result()


def _client(source: str, moments: _Moments, scale: int, random: Random) -> None:
    with closing(connect(source)) as connection:
        while (moment := moments.next()) is not None:
            time.sleep(max(0.0, moment - time.monotonic()))
            statements = _transaction(scale, random)
            while not _carried_out(connection, statements):
                pass


def _transaction(scale: int, random: Random) -> list[str]:
    account, teller = random.randint(1, 100_000 * scale), random.randint(1, 10 * scale)
    branch, delta = random.randint(1, scale), random.randint(-5_000, 5_000)
    return [
        f"UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {account}",
        f"UPDATE pgbench_tellers SET tbalance = tbalance + {delta} WHERE tid = {teller}",
        f"UPDATE pgbench_branches SET bbalance = bbalance + {delta} WHERE bid = {branch}",
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)"
        f" VALUES ({teller}, {branch}, {account}, {delta}, CURRENT_TIMESTAMP(6))",
    ]


def _carried_out(connection: pymysql.connections.Connection, statements: list[str]) -> bool:
    """Carries out a transaction; returns False where a lock was in its way."""
    connection.begin()
    try:
        for statement in statements:
            connection.query(statement)
        connection.commit()
    except pymysql.OperationalError as error:
        connection.rollback()
        if error.args[0] not in _LOCKED:
            raise
        return False
    return True


if __name__ == "__main__":
    main()
