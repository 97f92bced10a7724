"""Debezium's own engine on PostgreSQL, through a stream, ``kainite run`` with the processor, and an apply job.

The engine is killed, as are daemon and processors; Kinesis refuses records. In the end the target has what the source
has, or the log says which unit it cannot have. Each engine takes 4 s and 350 MB: ``make
test-debezium`` runs these tests.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.store.dynamodb import DynamoDBStore
from kainite_demo.postgres_server import postgres
from support.debezium_engine import DebeziumServer
from support.debezium_sink import Sending
from support.names import unique
from support.pipeline import Pipeline
from support.ports import free_port
from support.processor_child import command_of
from support.stores import Database
from support.waiting import eventually

pytestmark = [pytest.mark.debezium, pytest.mark.timeout(1200), pytest.mark.xdist_group("debezium")]

SHOP = """
    CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL, balance numeric(12, 2) NOT NULL DEFAULT 7);
    CREATE TABLE orders (
        id integer PRIMARY KEY, customer integer NOT NULL REFERENCES customer, note text, document text);
    CREATE TABLE line (
        orders integer REFERENCES orders, number integer, quantity integer, PRIMARY KEY (orders, number));
    CREATE TABLE journal (what text, amount numeric(12, 2));
"""
LARGE = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=20_000))
"""A text that PostgreSQL stores beside its row: an update that leaves it alone does not carry it."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Gives the address of a PostgreSQL server that listens on the loopback interface, as JDBC needs it."""
    folder, port = Path(tempfile.mkdtemp(prefix="kainite-dbz-")), str(free_port())
    with postgres(folder / "pg", wal_level="logical", listen_addresses="127.0.0.1", port=port) as url:
        yield make_conninfo(url, port=port)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Shop:
    """A source and a target with the same tables, and all between them.

    Attributes:
        source: a connection to the source.
        target: the target's database.
        pipeline: stream, daemon, log and apply job.
        debezium: the connector.
        units: the names of the transactions that the source has committed.
    """

    source: psycopg.Connection
    target: Database
    pipeline: Pipeline
    debezium: DebeziumServer
    units: list[str] = field(default_factory=list)

    def commit(self, *statements: str) -> str:
        """Makes a transaction of statements; returns the name of its unit."""
        with self.source.transaction():
            for statement in statements:
                self.source.execute(statement.encode())
            found = self.source.execute("SELECT pg_current_xact_id()").fetchone()
        assert found is not None
        self.units.append(str(found[0]))
        return self.units[-1]

    def daemon(self, **more: str) -> Any:
        command = [*command_of("debezium"), "--tables", str(self.pipeline.folder / "tables.json")]
        (self.pipeline.folder / "tables.json").write_text("{}")
        return self.pipeline.daemon(self.pipeline.properties(executableName=" ".join(command), **more))

    def await_all(self) -> None:
        """Waits until the log has each of the transactions, whole or failed."""
        try:
            eventually(lambda: not self._missing(), limit=300, pause=0.5)
        except AssertionError:
            raise AssertionError(f"not in the log, or not whole: {self._missing()}") from None

    def await_units(self, count: int) -> None:
        """Waits until the log knows of so many units."""
        eventually(lambda: len(self.pipeline.rows()) >= count, limit=300, pause=0.2)

    def _missing(self) -> list[str]:
        statuses = self.pipeline.statuses()
        return [uow for uow in self.units if statuses.get(uow, "collecting") == "collecting"]

    def assert_equal(self, *tables: str) -> None:
        """Checks that the target's tables have the source's rows, as PostgreSQL writes them."""
        for table in tables:
            query = f"SELECT t::text FROM {table} t ORDER BY 1"
            assert self.target.rows(query) == self.source.execute(query.encode()).fetchall()


@pytest.fixture
def shop_of(
    server: str, kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> Iterator[Callable[..., Shop]]:
    """Gives a maker of shops: with what tables, how many shards, and what the connector does."""
    opened: list[psycopg.Connection] = []

    def make(tables: str = SHOP, shards: int = 1, **connector: Any) -> Shop:
        name = unique("dbz").replace("_", "-")
        urls = []
        with psycopg.connect(server, autocommit=True) as admin:
            for side in ("source", "target"):
                admin.execute(f'CREATE DATABASE "{name}-{side}"'.encode())
                urls.append(make_conninfo(server, dbname=f"{name}-{side}"))
        source = psycopg.connect(urls[0], autocommit=True)
        opened.append(source)
        target = Database("postgresql://postgres@/{dbname}?host={host}&port={port}".format(**conninfo_to_dict(urls[1])))
        source.execute(tables.encode())
        target.run(tables)
        store = DynamoDBStore(dynamodb, f"{name}-log")
        pipeline = Pipeline(kinesis, store, name, moto_endpoint, target, tmp_path, shards)
        return Shop(source, target, pipeline, DebeziumServer(urls[0], moto_endpoint, name, tmp_path, **connector))

    yield make
    for connection in opened:
        connection.close()


def test_conflicting_transactions_keep_their_order_while_everything_is_killed(shop_of: Callable[..., Shop]) -> None:
    """Shows it for one shard, with events put one by one, as the page asks."""
    shop = shop_of(batch_size=1)
    chance = random.Random(4)
    with shop.daemon():
        with shop.debezium.running():
            trade(shop, chance, 15)
            shop.await_units(5)
        trade(shop, chance, 15)
        with shop.debezium.running():
            trade(shop, chance, 5)
            shop.await_units(20)
    with shop.daemon() as daemon, shop.debezium.running():
        trade(shop, chance, 5)
        for child in psutil.Process(daemon.pid).children(recursive=True):
            child.kill()
        trade(shop, chance, 10)
        shop.await_all()
    assert set(shop.pipeline.statuses().values()) == {"in progress"}
    shop.pipeline.apply()
    shop.assert_equal("customer", "orders", "line", "journal")


def trade(shop: Shop, chance: random.Random, transactions: int) -> None:
    """Makes transactions that conflict: on customers' rows, and on orders with their lines."""
    for _ in range(transactions):
        number, customer = len(shop.units), chance.randrange(5)
        statements = [
            f"INSERT INTO customer VALUES ({customer}, 'käufer', {number}) "
            f"ON CONFLICT (id) DO UPDATE SET balance = customer.balance + {number}.25",
            f"INSERT INTO orders VALUES ({number}, {customer}, NULL, '{LARGE}')",
            f"INSERT INTO line VALUES ({number}, 1, 1), ({number}, 2, NULL)",
            f"UPDATE line SET number = 3 WHERE orders = {number} AND number = 2",
            f"INSERT INTO journal VALUES ('sold', {number}), ('sold', {number}.50)",
        ]
        earlier = chance.randrange(number) if number else 0
        later = [
            f"UPDATE orders SET note = coalesce(note, '') || '{number}' WHERE id = {earlier}",
            f"DELETE FROM line WHERE orders = {earlier}",
            f"UPDATE line SET quantity = {number} WHERE orders = {earlier}",
            f"UPDATE orders SET document = NULL WHERE id = {earlier}",
            f"SELECT pg_logical_emit_message(true, 'shop', 'sale {number}')",
        ]
        shop.commit(*statements, *chance.sample(later, 2))


def test_refused_records_come_later_and_each_transaction_arrives_whole(shop_of: Callable[..., Shop]) -> None:
    """Shows it for two shards and requests of 500, of which Kinesis refuses a third; the engine is killed too."""
    shop = shop_of(shards=2, refused=0.33)
    for seed in range(3):
        with shop.daemon(), shop.debezium.running(seed):
            sell(shop, 15)
            shop.await_units(len(shop.units) - 10)
    with shop.daemon(), shop.debezium.running(seed=9):
        shop.await_all()
    assert shop.debezium.lost() == []
    assert set(shop.pipeline.statuses().values()) == {"in progress"}
    shop.pipeline.apply()
    shop.assert_equal("customer", "orders", "line")


def sell(shop: Shop, transactions: int) -> None:
    """Makes transactions that share no row: several shards keep no order between those that do."""
    for _ in range(transactions):
        number = len(shop.units)
        shop.commit(
            f"INSERT INTO customer VALUES ({number}, 'one', 1)",
            f"INSERT INTO orders VALUES ({number}, {number})",
            f"INSERT INTO line SELECT {number}, g, g FROM generate_series(1, 5) g",
            f"UPDATE line SET quantity = NULL WHERE orders = {number} AND number > 3",
        )


def test_a_killed_engine_resumes_a_long_transaction(shop_of: Callable[..., Shop]) -> None:
    """Shows that the events' places stay what they were where the engine is killed within a transaction."""
    shop = shop_of(shards=2, engine={"max.batch.size": "100", "max.queue.size": "200", "offset.flush.interval.ms": "0"})
    with shop.daemon():
        with shop.debezium.running():
            shop.commit(
                "INSERT INTO customer VALUES (1, 'one', 1)",
                "INSERT INTO orders VALUES (1, 1)",
                "INSERT INTO line SELECT 1, g, g FROM generate_series(1, 1500) g",
                "UPDATE line SET quantity = NULL WHERE number > 1200",
            )
            shop.await_units(1)
        for _ in range(2):
            with shop.debezium.running():
                pass
        with shop.debezium.running():
            shop.await_all()
    (row,) = shop.pipeline.rows().values()
    assert (row.status, row.trans_in, row.trans_out) == ("in progress", 1802, 1802)
    shop.pipeline.apply()
    shop.assert_equal("customer", "orders", "line")


TYPES = """
    CREATE TYPE mood AS ENUM ('sad', 'fine');
    CREATE TABLE typed (
        id bigint PRIMARY KEY, yes boolean, small smallint, free numeric, fixed numeric(20, 4), float4 real,
        float8 double precision, padded char(5), text text DEFAULT 'default', bytes bytea, day date, at time,
        moment timestamp, moment3 timestamp(3), instant timestamptz, lasts interval, name uuid, json json,
        jsonb jsonb, ints integer[], texts text[], numbers numeric(6, 2)[], mood mood, address inet, money money,
        range int4range);
"""
VALUES = [
    "1, true, -3, 1e20 + 0.125, 1234567.8901, 1.1, 0.1, 'ab', NULL, '\\x00ff', '2024-02-29', '12:34:56.789', "
    "'2024-02-29 12:34:56.123456', '2024-02-29 12:34:56.123', '2024-02-29 12:34:56.123456+05', "
    "'1 mon 2 days 03:04:05.678', '11111111-2222-3333-4444-555555555555', '{\"a\": 1.10}', '{\"a\": [1, null]}', "
    "'{1,NULL,3}', '{\"a,b\",NULL}', '{1.25,2.5}', 'fine', '10.0.0.1/24', '12.34', '[1,5)'",
    "2, false, 32767, -0.00001, -0.0001, 'NaN', '-Infinity', '', '', '', '1970-01-01', '24:00:00', "
    "'1969-12-31 23:59:59.999999', '1900-01-01', '1900-01-01 00:00:00+00', '-1 days +00:00:00.000001', NULL, '[]', "
    "'0', '{}', '{}', '{}', 'sad', '::1', '-0.01', 'empty'",
    "3" + ", NULL" * 25,
]


def test_values_of_each_type_arrive_as_they_were(shop_of: Callable[..., Shop]) -> None:
    shop = shop_of(TYPES)
    with shop.daemon(), shop.debezium.running():
        for values in VALUES:
            shop.commit(f"INSERT INTO typed VALUES ({values})")
        shop.commit("UPDATE typed SET small = 5, float4 = 2.5, lasts = '2 days' WHERE id = 3")
        shop.await_all()
    shop.pipeline.apply()
    shop.assert_equal("typed")


def test_what_a_losing_release_loses_fails_its_unit(shop_of: Callable[..., Shop]) -> None:
    """Shows that a transaction is applied whole or fails, where the sink loses records (3.0.1 to 3.1.0)."""
    shop = shop_of(sending=Sending.LOSING, refused=0.33)
    with shop.daemon(uowTimeoutMillis="5000"), shop.debezium.running(seed=3):
        sell(shop, 30)
        eventually(lambda: (shop.debezium.folder / "lost").exists())
        shop.await_all()
    torn = {name_of(event) for event in shop.debezium.lost() if event.get("status") != "BEGIN"}
    assert torn
    statuses = shop.pipeline.statuses()
    assert {uow for uow, status in statuses.items() if status == "failed"} == torn
    assert {statuses[uow] for uow in set(shop.units) - torn} <= {"in progress"}
    causes = [str(shop.pipeline.rows()[uow].cause) for uow in torn]
    assert [cause for cause in causes if "deltas came" not in cause and "end" not in cause] == []


def name_of(event: dict[str, Any]) -> str:
    transaction: str = event["id"] if "status" in event else event["transaction"]["id"]
    return transaction.partition(":")[0]
