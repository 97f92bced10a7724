"""A small TPC-C: New-Order, Payment and Delivery on a source of its own, and what every snapshot of a target must meet.

:class:`Source` runs transactions on rows that it holds in memory, and gives their deltas. A snapshot of the target is
*consistent* when TPC-C's twelve consistency conditions hold in it (:data:`CONDITIONS`, clause 3.3.2), and when it is
one of the states that the source had (:meth:`Source.look`). Initial rows of ``order_line`` have the amount 0, and
there are no payments yet, so all conditions hold from the start. Condition 11 is about the initial rows alone
(orders less new orders are 2,100 a district); each delivery adds one, and ``c_delivery_cnt`` counts deliveries.

``history`` has no key, as in TPC-C: a unit that is applied twice violates conditions 8 to 10.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from kainite.uow.delta import Delta, Operation

WAREHOUSES, DISTRICTS, CUSTOMERS, ITEMS = 2, 2, 30, 20
ORDERS, NEW_ORDERS = 15, 10
"""Initial orders of a district, and how many of them are new; the customers 1, 2 … have placed one each."""

DDL = """
    CREATE TABLE warehouse (w_id bigint PRIMARY KEY, w_ytd bigint NOT NULL);
    CREATE TABLE district (
        d_w_id bigint REFERENCES warehouse, d_id bigint, d_ytd bigint NOT NULL, d_next_o_id bigint NOT NULL,
        PRIMARY KEY (d_w_id, d_id));
    CREATE TABLE customer (
        c_w_id bigint, c_d_id bigint, c_id bigint, c_balance bigint NOT NULL, c_ytd_payment bigint NOT NULL,
        c_delivery_cnt bigint NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id),
        FOREIGN KEY (c_w_id, c_d_id) REFERENCES district);
    CREATE TABLE history (
        h_c_w_id bigint NOT NULL, h_c_d_id bigint NOT NULL, h_c_id bigint NOT NULL, h_w_id bigint NOT NULL,
        h_d_id bigint NOT NULL, h_amount bigint NOT NULL,
        FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer, FOREIGN KEY (h_w_id, h_d_id) REFERENCES district);
    CREATE TABLE stock (
        s_w_id bigint REFERENCES warehouse, s_i_id bigint, s_quantity bigint NOT NULL, s_ytd bigint NOT NULL,
        PRIMARY KEY (s_w_id, s_i_id));
    CREATE TABLE orders (
        o_w_id bigint, o_d_id bigint, o_id bigint, o_c_id bigint NOT NULL, o_carrier_id bigint,
        o_ol_cnt bigint NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id),
        FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer);
    CREATE TABLE new_order (
        no_w_id bigint, no_d_id bigint, no_o_id bigint, PRIMARY KEY (no_w_id, no_d_id, no_o_id),
        FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders);
    CREATE TABLE order_line (
        ol_w_id bigint, ol_d_id bigint, ol_o_id bigint, ol_number bigint, ol_i_id bigint NOT NULL,
        ol_delivery_d bigint, ol_quantity bigint NOT NULL, ol_amount bigint NOT NULL,
        PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number),
        FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders, FOREIGN KEY (ol_w_id, ol_i_id) REFERENCES stock);
"""

_DELIVERED = """
    (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM orders, order_line
     WHERE (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id) AND ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3)
    AS d ON (o_w_id, o_d_id, o_c_id) = (c_w_id, c_d_id, c_id)"""
_PAID = """
    (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY 1, 2, 3)
    AS p ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id)"""
_MATCH = "(o_w_id, o_d_id, o_id)"

CONDITIONS: Mapping[int, str] = {
    1: "SELECT w_id FROM warehouse WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    2: "SELECT d_w_id, d_id FROM district, LATERAL (SELECT max(o_id) AS latest FROM orders"
    " WHERE (o_w_id, o_d_id) = (d_w_id, d_id)) AS o, LATERAL (SELECT max(no_o_id) AS newest FROM new_order"
    " WHERE (no_w_id, no_d_id) = (d_w_id, d_id)) AS n"
    " WHERE latest <> d_next_o_id - 1 OR newest <> d_next_o_id - 1",
    3: "SELECT no_w_id, no_d_id FROM new_order GROUP BY 1, 2 HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    4: "SELECT o_w_id, o_d_id FROM orders GROUP BY 1, 2 HAVING sum(o_ol_cnt) <>"
    " (SELECT count(*) FROM order_line WHERE (ol_w_id, ol_d_id) = (o_w_id, o_d_id))",
    5: f"SELECT o_id FROM orders LEFT JOIN new_order ON (no_w_id, no_d_id, no_o_id) = {_MATCH}"
    " WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    6: f"SELECT o_id FROM orders LEFT JOIN order_line ON (ol_w_id, ol_d_id, ol_o_id) = {_MATCH}"
    f" GROUP BY {_MATCH[1:-1]} HAVING o_ol_cnt <> count(ol_number)",
    7: f"SELECT o_id FROM orders JOIN order_line ON (ol_w_id, ol_d_id, ol_o_id) = {_MATCH}"
    " WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    8: "SELECT w_id FROM warehouse WHERE w_ytd <> (SELECT coalesce(sum(h_amount), 0) FROM history WHERE h_w_id = w_id)",
    9: "SELECT d_id FROM district WHERE d_ytd <>"
    " (SELECT coalesce(sum(h_amount), 0) FROM history WHERE (h_w_id, h_d_id) = (d_w_id, d_id))",
    10: f"SELECT c_id FROM customer LEFT JOIN {_DELIVERED} LEFT JOIN {_PAID}"
    " WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
    11: "SELECT d_w_id, d_id FROM district WHERE"
    " (SELECT count(*) FROM orders WHERE (o_w_id, o_d_id) = (d_w_id, d_id))"
    " - (SELECT count(*) FROM new_order WHERE (no_w_id, no_d_id) = (d_w_id, d_id))"
    f" <> {ORDERS - NEW_ORDERS} + (SELECT sum(c_delivery_cnt) FROM customer WHERE (c_w_id, c_d_id) = (d_w_id, d_id))",
    12: f"SELECT c_id FROM customer LEFT JOIN {_DELIVERED} WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)",
}
"""TPC-C's consistency conditions as queries for what violates them."""

_COLUMNS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "warehouse": (1, ("w_id", "w_ytd")),
    "district": (2, ("d_w_id", "d_id", "d_ytd", "d_next_o_id")),
    "customer": (3, ("c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment", "c_delivery_cnt")),
    "history": (0, ("h_c_w_id", "h_c_d_id", "h_c_id", "h_w_id", "h_d_id", "h_amount")),
    "stock": (2, ("s_w_id", "s_i_id", "s_quantity", "s_ytd")),
    "orders": (3, ("o_w_id", "o_d_id", "o_id", "o_c_id", "o_carrier_id", "o_ol_cnt")),
    "new_order": (3, ("no_w_id", "no_d_id", "no_o_id")),
    "order_line": (
        4,
        ("ol_w_id", "ol_d_id", "ol_o_id", "ol_number", "ol_i_id", "ol_delivery_d", "ol_quantity", "ol_amount"),
    ),
}
"""For each table how many columns its key has, and all columns."""

_STATE = "SELECT " + ", ".join(
    f"(SELECT ARRAY[count(*), {', '.join(f'coalesce(sum({column}), 0)' for column in columns)}]::bigint[] FROM {table})"
    for table, (_, columns) in _COLUMNS.items()
)

State = tuple[tuple[int, ...], ...]
"""For each table the number of its rows, and the sum of each column."""


class Source:
    """The source: runs TPC-C's transactions on rows of its own, and gives their deltas."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._rows: dict[str, dict[tuple[int, ...], dict[str, int | None]]] = {table: {} for table in _COLUMNS}
        self._sums = {table: Counter[str]() for table in _COLUMNS}
        self._deltas: list[Delta] = []
        self._populate()
        self._initial, self._deltas = self._deltas, []
        self._states = {self.state: 0}

    @property
    def state(self) -> State:
        """Returns the source's present state."""
        return tuple(
            tuple(self._sums[table][column] for column in ("", *columns)) for table, (_, columns) in _COLUMNS.items()
        )

    def create(self, url: str) -> None:
        """Creates the tables with the initial rows."""
        with psycopg.connect(url) as connection:
            connection.execute(DDL)
            for delta in self._initial:
                columns = ", ".join(delta.row)
                values = ", ".join("NULL" if value is None else str(value) for value in delta.row.values())
                connection.execute(_sql(f"INSERT INTO {delta.table} ({columns}) VALUES ({values})"))

    def transaction(self) -> list[Delta]:
        """Runs a transaction; returns its deltas in the source's order."""
        warehouse = self._chance.randint(1, WAREHOUSES)
        run: Callable[[int], None] = self._chance.choice((self._order, self._order, self._payment, self._delivery))
        run(warehouse)
        if not self._deltas:
            self._payment(warehouse)
        deltas, self._deltas = self._deltas, []
        self._states[self.state] = len(self._states)
        return deltas

    def look(self, connection: psycopg.Connection, seen: Watched) -> None:
        """Notes what a connection sees: the conditions that are violated, and whether the source had that state."""
        seen.snapshots += 1
        seen.wrong.update(
            f"condition {n}" for n, query in CONDITIONS.items() if connection.execute(_sql(query)).rowcount
        )
        reached = self._reached(connection)
        if reached is None:
            seen.wrong["no state of the source"] += 1
        else:
            seen.reached = reached

    def reached(self, url: str) -> int | None:
        """Returns after how many transactions the source had the target's present state; None: it never had it."""
        with psycopg.connect(url) as connection:
            return self._reached(connection)

    @contextmanager
    def watched(self, url: str, pause: float = 0.0) -> Iterator[Watched]:
        """Looks at one snapshot after the other while the context is entered, with a pause in seconds between them."""
        seen = Watched()
        ended = threading.Event()

        def watch() -> None:
            with psycopg.connect(url) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                while not ended.wait(pause):
                    self.look(connection, seen)
                    connection.rollback()

        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(watch)
            try:
                yield seen
            finally:
                ended.set()
                watching.result()

    def _reached(self, connection: psycopg.Connection) -> int | None:
        row = connection.execute(_sql(_STATE)).fetchone()
        assert row is not None
        return self._states.get(tuple(tuple(sums) for sums in row))

    def _populate(self) -> None:
        for w in range(1, WAREHOUSES + 1):
            self._insert("warehouse", w, 0)
            for item in range(1, ITEMS + 1):
                self._insert("stock", w, item, 1_000, 0)
            for d in range(1, DISTRICTS + 1):
                self._insert("district", w, d, 0, ORDERS + 1)
                for customer in range(1, CUSTOMERS + 1):
                    self._insert("customer", w, d, customer, 0, 0, 0)
                for number in range(1, ORDERS + 1):
                    delivered = number if number <= ORDERS - NEW_ORDERS else None
                    self._insert("orders", w, d, number, number, delivered, 1)
                    self._insert("order_line", w, d, number, 1, 1, delivered, 5, 0 if delivered else 10 * number)
                    if delivered is None:
                        self._insert("new_order", w, d, number)

    def _order(self, w: int) -> None:
        d = self._chance.randint(1, DISTRICTS)
        number = self._value("district", (w, d), "d_next_o_id")
        items = self._chance.sample(range(1, ITEMS + 1), self._chance.randint(1, 4))
        self._update("district", (w, d), d_next_o_id=number + 1)
        self._insert("orders", w, d, number, self._chance.randint(1, CUSTOMERS), None, len(items))
        self._insert("new_order", w, d, number)
        for line, item in enumerate(items, 1):
            quantity = self._chance.randint(1, 10)
            self._add("stock", (w, item), s_quantity=-quantity, s_ytd=quantity)
            self._insert("order_line", w, d, number, line, item, None, quantity, quantity * self._chance.randint(1, 99))

    def _payment(self, w: int) -> None:
        d = self._chance.randint(1, DISTRICTS)
        # Some customers pay at another warehouse than their own.
        home = self._chance.choice((w, w, w, WAREHOUSES + 1 - w))
        customer = (home, self._chance.randint(1, DISTRICTS), self._chance.randint(1, CUSTOMERS))
        amount = self._chance.randint(1, 5_000)
        self._add("warehouse", (w,), w_ytd=amount)
        self._add("district", (w, d), d_ytd=amount)
        self._add("customer", customer, c_balance=-amount, c_ytd_payment=amount)
        self._insert("history", *customer, w, d, amount)

    def _delivery(self, w: int) -> None:
        carrier = self._chance.randint(1, 10)
        for d in range(1, DISTRICTS + 1):
            waiting = [key for key in self._rows["new_order"] if key[:2] == (w, d)]
            if len(waiting) > 1:
                self._deliver(min(waiting), carrier)

    def _deliver(self, order: tuple[int, ...], carrier: int) -> None:
        self._delete("new_order", order)
        self._update("orders", order, o_carrier_id=carrier)
        lines = [key for key in self._rows["order_line"] if key[:3] == order]
        for line in lines:
            self._update("order_line", line, ol_delivery_d=carrier)
        amount = sum(self._value("order_line", line, "ol_amount") for line in lines)
        customer = (*order[:2], self._value("orders", order, "o_c_id"))
        self._add("customer", customer, c_balance=amount, c_delivery_cnt=1)

    def _value(self, table: str, key: tuple[int, ...], column: str) -> int:
        value = self._rows[table][key][column]
        assert value is not None
        return value

    def _add(self, table: str, key: tuple[int, ...], **more: int) -> None:
        self._update(table, key, **{column: self._value(table, key, column) + by for column, by in more.items()})

    def _insert(self, table: str, *values: int | None) -> None:
        width, columns = _COLUMNS[table]
        row = dict(zip(columns, values, strict=True))
        self._deltas.append(Delta(table, Operation.INSERT, dict(list(row.items())[:width]), dict(row), {}))
        self._count(table, row, 1)
        if width:
            self._rows[table][tuple(row[column] or 0 for column in columns[:width])] = row

    def _update(self, table: str, key: tuple[int, ...], **changes: int) -> None:
        row = self._rows[table][key]
        self._deltas.append(Delta(table, Operation.UPDATE, _named(table, key), dict(changes), {}))
        self._count(table, row, -1)
        row.update(changes)
        self._count(table, row, 1)

    def _delete(self, table: str, key: tuple[int, ...]) -> None:
        row = self._rows[table].pop(key)
        self._deltas.append(Delta(table, Operation.DELETE, _named(table, key), {}, dict(row)))
        self._count(table, row, -1)

    def _count(self, table: str, row: Mapping[str, int | None], by: int) -> None:
        self._sums[table].update({"": by, **{column: by * (value or 0) for column, value in row.items()}})


class Watched:
    """How many snapshots were looked at, what was wrong with them, and how many transactions the latest state had."""

    def __init__(self) -> None:
        self.snapshots = 0
        self.wrong: Counter[str] = Counter()
        self.reached = 0


def emitted(uow: str, number: int, deltas: list[Delta]) -> list[dict[str, Any]]:
    """Returns what a record processor emits for a transaction: its deltas in order, and its end."""
    return [
        *({"uow": uow, "ordinal": ordinal, **delta.to_json()} for ordinal, delta in enumerate(deltas)),
        {"uow": uow, "end": True, "count": len(deltas), "number": number},
    ]


def _named(table: str, key: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(_COLUMNS[table][1], key, strict=False))


def _sql(text: str) -> LiteralString:
    """Returns the statement as psycopg's types want it: it is put together from this module's own names alone."""
    return text
