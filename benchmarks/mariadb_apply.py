"""Units per second into MariaDB: the apply path, beside hand-written statements, and beside PostgreSQL in the same run.

The units are the orders of ``benchmarks/apply.py``: a row in ``orders``, three in ``order_line`` with foreign keys, and
the update of one of many accounts. Three ways take turns, each into freshly filled tables; medians are compared:

* *MariaDB*: what a job instance of the apply job does with its units, from deltas in memory to the commit;
* *by hand*: INSERTs of many rows and an UPDATE by a joined list of values, 1,000 units a commit, one connection, no
  guarantees (repeated updates of an account are merged);
* *PostgreSQL*: as the first, into PostgreSQL.

Both servers write to disk as they do by default, and MariaDB without a binary log.

    python benchmarks/mariadb_apply.py [--units N] [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import psycopg
from apply import (
    ACCOUNTS,
    COMMIT_UNITS,
    PRODUCTS,
    SCHEMA,
    Order,
    make_orders,
    make_units,
    measure,
    postgresql,
    run_kainite,
    run_prepared,
)  # fmt: skip
from runs.machine import warn_unless_quiet

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from kainite.settings import ApplySettings
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.targets.opening import open_target
from support.mariadb_server import running

_TABLES: Final = (
    "CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, balance decimal(12,2) NOT NULL)",
    "CREATE TABLE product (id bigint PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE orders (id bigint PRIMARY KEY, account_id bigint NOT NULL, placed_at datetime NOT NULL, note text,"
    " FOREIGN KEY (account_id) REFERENCES account (id))",
    "CREATE TABLE order_line (order_id bigint, line_no int, product_id bigint NOT NULL, qty int NOT NULL,"
    " price decimal(10,2) NOT NULL, PRIMARY KEY (order_id, line_no),"
    " FOREIGN KEY (order_id) REFERENCES orders (id), FOREIGN KEY (product_id) REFERENCES product (id))",
)
_FILL: Final = (
    "DELETE FROM order_line", "DELETE FROM orders", "DELETE FROM account", "DELETE FROM product",
    f"INSERT INTO account SELECT seq, CONCAT('owner ', seq), 100 FROM seq_1_to_{ACCOUNTS}",
    f"INSERT INTO product SELECT seq, CONCAT('product ', seq) FROM seq_1_to_{PRODUCTS}",
    "ANALYZE TABLE account, product, orders, order_line",
)  # fmt: skip


def plain(orders: Sequence[Order]) -> list[Order]:
    """Returns the orders with times that both servers read alike, in UTC."""
    return [replace(order, order=_plain(*order.order)) for order in orders]


def _plain(number: int, account: int, placed: str, note: str) -> tuple[int, int, str, str]:
    return number, account, placed.replace("T", " ").removesuffix("+00:00"), note


def run_by_hand(url: str, orders: Sequence[Order]) -> None:
    """Writes the orders by hand-tuned statements."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for start in range(0, len(orders), COMMIT_UNITS):
            chunk = orders[start : start + COMMIT_UNITS]
            connection.begin()
            cursor.executemany("INSERT INTO orders VALUES (%s, %s, %s, %s)", [order.order for order in chunk])
            cursor.executemany(
                "INSERT INTO order_line VALUES (%s, %s, %s, %s, %s)", [line for order in chunk for line in order.lines]
            )
            accounts = dict(order.account for order in chunk)
            rows = ", ".join(["(%s, %s)"] * len(accounts))
            cursor.execute(
                f"UPDATE account JOIN (WITH d (id, balance) AS (VALUES {rows}) SELECT id, balance FROM d) AS given"
                " USING (id) SET account.balance = given.balance",
                [value for pair in accounts.items() for value in pair],
            )
            connection.commit()


def in_mariadb(url: str, orders: Sequence[Order]) -> float:
    """Applies the orders as a job instance does; returns seconds."""
    catalogue = reflect(url)
    units = make_units(orders, catalogue)
    target = open_target(url, catalogue, apply=ApplySettings())
    target.prepare("0", catalogue)
    _execute(url, "DELETE FROM kainite_applied", "DELETE FROM kainite_fence")
    with closing(target):
        return run_prepared(target, units, ApplyOptions())


def by_hand(url: str, orders: Sequence[Order]) -> float:
    """Writes the orders by hand; returns seconds."""
    began = time.perf_counter()
    run_by_hand(url, orders)
    return time.perf_counter() - began


def compare(orders: Sequence[Order], rounds: int) -> dict[str, list[float]]:
    """Returns the units per second of each way, one figure for each round."""
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server, postgresql() as url:
        _execute(server, "CREATE DATABASE shop")
        shop = server.replace("/mysql?", "/shop?")
        _execute(shop, *_TABLES)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)
        for _ in range(rounds):
            for name, way in (("MariaDB", in_mariadb), ("by hand", by_hand)):
                _execute(shop, *_FILL)
                rates.setdefault(name, []).append(len(orders) / way(shop, orders))
            seconds = measure(url, lambda: run_kainite(url, orders, ApplyOptions().group_units))
            rates.setdefault("PostgreSQL", []).append(len(orders) / seconds)
    return rates


def _execute(url: str, *statements: str) -> None:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def ratio(rates: dict[str, list[float]], other: str) -> float:
    """Returns the median of the rounds' ratios of MariaDB to another way."""
    return statistics.median(one / theirs for one, theirs in zip(rates["MariaDB"], rates[other], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    rates = compare(plain(make_orders(options.units)), options.rounds)
    if options.json:
        ratios = {"ratio_to_by_hand": ratio(rates, "by hand"), "ratio_to_postgresql": ratio(rates, "PostgreSQL")}
        print(json.dumps({**ratios, "rounds": rates}))
        return
    for name, found in rates.items():
        print(f"{name:40}{statistics.median(found):>9,.0f} units/s")
    for other in ("by hand", "PostgreSQL"):
        print(f"{f'MariaDB : {other}, median of rounds':40}{ratio(rates, other):>9.2f}")


if __name__ == "__main__":
    main()
