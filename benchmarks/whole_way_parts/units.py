"""The transactions of the whole way's two mixes: as SQL for a source, and as records for a stream.

A mix is a schema with its first rows and a list of transactions. Values are absolute, as a source's log tells them.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

FIRST_SEQUENCE = 49_640_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000
INT8, TEXT = 20, 25


@dataclass(frozen=True, slots=True)
class Change:
    """An insert, or the update of the row with ``key``; an insert's row has its key too."""

    op: str
    table: str
    key: dict[str, int]
    row: dict[str, int | str]


Transaction = Sequence[Change]


@dataclass(frozen=True, slots=True)
class Mix:
    """A kind of load.

    Attributes:
        name: the name in the table of results.
        schema, filling: the SQL that makes the tables, and that fills them.
        tables: parents first, each with its key.
        last: the table that each transaction adds one row to.
        transactions: yields as many transactions as it is asked for.
    """

    name: str
    schema: str
    filling: str
    tables: dict[str, tuple[str, ...]]
    last: str
    transactions: Callable[[int], Iterator[Transaction]]


BRANCHES, ACCOUNTS = 20, 100_000


def _tpcb(count: int) -> Iterator[Transaction]:
    chance = random.Random(7)
    for number in range(1, count + 1):
        teller, account = chance.randint(1, 10 * BRANCHES), chance.randint(1, ACCOUNTS)
        balances = (("account", account), ("teller", teller), ("branch", (teller - 1) // 10 + 1))
        updates = [Change("update", table, {"id": key}, {"balance": number}) for table, key in balances]
        row: dict[str, int | str] = {"id": number, "teller_id": teller, "account_id": account, "amount": number}
        yield [*updates, Change("insert", "history", {"id": number}, row)]


CUSTOMERS, PRODUCTS, LINES = 10_000, 1_000, 3


def _order_entry(count: int) -> Iterator[Transaction]:
    chance = random.Random(7)
    for number in range(1, count + 1):
        customer = chance.randint(1, CUSTOMERS)
        order: dict[str, int | str] = {"id": number, "customer_id": customer, "note": f"order {number}"}
        changes = [Change("insert", "orders", {"id": number}, order)]
        for line in range(1, LINES + 1):
            key, product = {"order_id": number, "line_no": line}, chance.randint(1, PRODUCTS)
            qty = chance.randint(1, 9)
            changes.append(Change("insert", "order_line", key, {**key, "product_id": product, "qty": qty}))
            changes.append(Change("update", "product", {"id": product}, {"stock": number}))
        shipment: dict[str, int | str] = {"id": number, "order_id": number, "line_no": 1}
        yield [*changes, Change("insert", "shipment", {"id": number}, shipment)]


MIXES = {
    "tpcb": Mix(
        name="TPC-B",
        schema="""
            CREATE TABLE branch (id bigint PRIMARY KEY, balance bigint NOT NULL);
            CREATE TABLE teller (id bigint PRIMARY KEY, branch_id bigint NOT NULL REFERENCES branch,
                                 balance bigint NOT NULL);
            CREATE TABLE account (id bigint PRIMARY KEY, branch_id bigint NOT NULL REFERENCES branch,
                                  balance bigint NOT NULL);
            CREATE TABLE history (id bigint PRIMARY KEY, teller_id bigint NOT NULL REFERENCES teller,
                                  account_id bigint NOT NULL REFERENCES account, amount bigint NOT NULL)""",
        filling=f"""
            INSERT INTO branch SELECT i, 0 FROM generate_series(1, {BRANCHES}) i;
            INSERT INTO teller SELECT i, (i - 1) / 10 + 1, 0 FROM generate_series(1, {10 * BRANCHES}) i;
            INSERT INTO account SELECT i, 1, 0 FROM generate_series(1, {ACCOUNTS}) i""",
        tables={"branch": ("id",), "teller": ("id",), "account": ("id",), "history": ("id",)},
        last="history",
        transactions=_tpcb,
    ),
    "orders": Mix(
        name="order entry",
        schema="""
            CREATE TABLE region (id bigint PRIMARY KEY, name text NOT NULL);
            CREATE TABLE product (id bigint PRIMARY KEY, stock bigint NOT NULL);
            CREATE TABLE customer (id bigint PRIMARY KEY, region_id bigint NOT NULL REFERENCES region);
            CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customer, note text);
            CREATE TABLE order_line (order_id bigint REFERENCES orders, line_no bigint, qty bigint NOT NULL,
                                     product_id bigint NOT NULL REFERENCES product, PRIMARY KEY (order_id, line_no));
            CREATE TABLE shipment (id bigint PRIMARY KEY, order_id bigint NOT NULL, line_no bigint NOT NULL,
                                   FOREIGN KEY (order_id, line_no) REFERENCES order_line)""",
        filling=f"""
            INSERT INTO region SELECT i, 'region ' || i FROM generate_series(1, 10) i;
            INSERT INTO product SELECT i, 0 FROM generate_series(1, {PRODUCTS}) i;
            INSERT INTO customer SELECT i, i % 10 + 1 FROM generate_series(1, {CUSTOMERS}) i""",
        tables={
            "product": ("id",),
            "customer": ("id",),
            "orders": ("id",),
            "order_line": ("order_id", "line_no"),
            "shipment": ("id",),
        },
        last="shipment",
        transactions=_order_entry,
    ),
}


def statement(change: Change) -> tuple[str, list[Any]]:
    """Returns a change as SQL with placeholders, and its values."""
    if change.op == "insert":
        marks = ", ".join(["%s"] * len(change.row))
        return f"INSERT INTO {change.table} ({', '.join(change.row)}) VALUES ({marks})", list(change.row.values())
    assigned = ", ".join(f"{column} = %s" for column in change.row)
    where = " AND ".join(f"{column} = %s" for column in change.key)
    return f"UPDATE {change.table} SET {assigned} WHERE {where}", [*change.row.values(), *change.key.values()]


def uow(number: int) -> str:
    """Returns the name of the unit of a transaction, which are numbered from 1."""
    return f"T-{number}"


def records(number: int, transaction: Transaction) -> Iterator[bytes]:
    """Yields a transaction's records as ``kainite-extract-postgresql`` puts them: its changes, then its end."""
    unit = {"uow": uow(number), "number": number}
    count = len(transaction)
    for ordinal, change in enumerate(transaction):
        new = {**change.key, **change.row}
        types = {column: TEXT if isinstance(value, str) else INT8 for column, value in new.items()}
        body = {"ordinal": ordinal, "count": count, "relation": f"public.{change.table}", "operation": change.op}
        texts = {"types": types, "key": _texts(change.key), "new": _texts(new)}
        yield json.dumps(unit | body | texts, separators=(",", ":")).encode()
    yield json.dumps(unit | {"end": True, "count": count}, separators=(",", ":")).encode()


def rendered(sequence: int, key: str, data: bytes) -> bytes:
    """Returns a record as GetRecords answers it."""
    record = {
        "SequenceNumber": str(FIRST_SEQUENCE + sequence),
        "ApproximateArrivalTimestamp": 1_763_700_000.123,
        "Data": base64.b64encode(data).decode(),
        "PartitionKey": key,
    }
    return json.dumps(record, separators=(",", ":")).encode()


def _texts(values: dict[str, int] | dict[str, int | str]) -> dict[str, str]:
    return {column: str(value) for column, value in values.items()}
