"""A stream like Aurora DSQL's through ``kainite run``, its record processors, the log and an apply job into PostgreSQL.

Transactions without ends come spread over all shards, out of order, some records twice, some rows in pieces, while the
stream is resharded, and the daemon and its children are killed. Each unit is in the log once, no snapshot of the target
has a part of one, and at the end the target is what the source is.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite_demo.dsql_changes import NetChange
from kainite_demo.dsql_delivery import Habits, UntidyDelivery
from kainite_demo.dsql_records import Committed, Recorder, name_of
from kainite_demo.resharding import Resharding
from support.names import unique
from support.pipeline import Pipeline
from support.processor_child import command_of
from support.stores import Database
from support.waiting import eventually

pytestmark = pytest.mark.timeout(400)

TABLES = """
    CREATE TABLE account (id integer PRIMARY KEY, balance numeric(12, 2) NOT NULL, note text, seen timestamptz);
    CREATE TABLE transfer (id uuid PRIMARY KEY, giver integer REFERENCES account, taker integer, amount numeric(12, 2),
                           day date, proof bytea, doc jsonb)
"""
ACCOUNTS = 6
HABITS = Habits(spread=0.4, repeats=0.2, lagging=0.3, lag=0.3, burst_every=3.0, burst_pause=0.3)
GRACE_MILLIS = 4000
LIMIT = 150.0


class Bank:
    """The source: accounts whose balances add up to nothing, and transfers between them."""

    def __init__(self, choice: random.Random) -> None:
        self.accounts: dict[int, tuple[int, str | None]] = {}
        self.transfers: dict[str, tuple[int, int, int]] = {}
        self._choice = choice
        self._made = 0

    def transaction(self) -> tuple[NetChange, ...]:
        """Commits a transaction; returns its net effect."""
        self._made += 1
        if self._made == 1:
            return tuple(self._account(number, 0, None) for number in range(ACCOUNTS))
        if self.transfers and self._choice.random() < 0.3:
            return tuple(self._taken_back(self._choice.choice(list(self.transfers))))
        giver, taker = self._choice.sample(range(ACCOUNTS), 2)
        amount, name = self._choice.randint(1, 999), f"{self._choice.getrandbits(128):032x}"
        self.transfers[name] = (giver, taker, amount)
        return (*self._moved(giver, taker, amount), self._transfer(name, *self.transfers[name]))

    def _taken_back(self, name: str) -> Iterator[NetChange]:
        giver, taker, amount = self.transfers.pop(name)
        yield from self._moved(taker, giver, amount)
        yield NetChange("public", "transfer", "d", {"id": uuid_of(name)}, None)

    def _moved(self, giver: int, taker: int, amount: int) -> Iterator[NetChange]:
        for number, change in ((giver, -amount), (taker, amount)):
            note = self._choice.choice([None, "ä" * self._choice.randint(1, 30)])
            yield self._account(number, self.accounts[number][0] + change, note)

    def _account(self, number: int, cents: int, note: str | None) -> NetChange:
        op = "u" if number in self.accounts else "c"
        self.accounts[number] = cents, note
        row = {"id": number, "balance": money(cents), "note": note, "seen": 1710510600123456 + number}
        return NetChange("public", "account", op, None, row)

    def _transfer(self, name: str, giver: int, taker: int, amount: int) -> NetChange:
        row = {"id": uuid_of(name), "giver": giver, "taker": taker, "amount": money(amount)}
        return NetChange("public", "transfer", "c", None, {**row, "day": 19797, "proof": "AP8=", "doc": '{"a": [1.5]}'})


def money(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


def uuid_of(name: str) -> str:
    return "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:]))


class Stream:
    """Brings the bank's transactions to the stream as DSQL does."""

    def __init__(self, pipeline: Pipeline, seed: int) -> None:
        choice = random.Random(seed)
        self.bank = Bank(choice)
        self.units: list[str] = []
        self._pipeline = pipeline
        self._recorder = Recorder(choice, split=0.02)
        self._delivery = UntidyDelivery(HABITS, choice)
        self._resharding = Resharding(pipeline.kinesis, pipeline.name, time.monotonic() + 2.0, apart=2.0)

    def run(self, transactions: int, each: float) -> None:
        """Commits transactions, one each so many seconds, and returns when all of their records are on the stream."""
        due, left = time.monotonic(), transactions
        while left or len(self._delivery):
            now = time.monotonic()
            if left and now >= due:
                self._commit(now)
                due, left = due + each, left - 1
            records = [{"PartitionKey": key, "Data": data} for key, data in self._delivery.due(now)]
            if records:
                self._pipeline.kinesis.put_records(StreamName=self._pipeline.name, Records=records)
            self._resharding.look(now)
            time.sleep(0.005)

    def _commit(self, now: float) -> None:
        committed = Committed(name_of(f"{len(self.units)}"), time.time_ns(), self.bank.transaction())
        self.units.append(committed.tx)
        for record in self._recorder.records_of(committed, time.time_ns()):
            self._delivery.give(record, now)


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, postgres: str, tmp_path: Path) -> Pipeline:
    name = unique("dsql")
    database = Database(postgres)
    database.run(TABLES)
    write_catalogue(reflect(postgres), tmp_path / "catalogue.json")
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def properties(pipeline: Pipeline) -> Path:
    command = [
        *command_of("aurora_dsql"),
        "--catalogue",
        str(pipeline.folder / "catalogue.json"),
        "--stream",
        pipeline.name,
    ]
    command += ["--region", "us-east-1", "--endpoint", pipeline.endpoint]
    watermark = {"uowEnd": "watermark", "uowOrder": "time", "uowGraceMillis": str(GRACE_MILLIS)}
    return pipeline.properties(executableName=" ".join(command), shardSyncIntervalMillis="500", **watermark)


def dispatched(pipeline: Pipeline, units: list[str]) -> bool:
    shown = pipeline.statuses()
    assert not [name for name in shown if name not in units], "a unit came late"
    return all(shown.get(unit) in ("in progress", "committed") for unit in units)


def check(pipeline: Pipeline) -> None:
    """Looks for a part of a transaction in the target: balances then do not add up, or not to the transfers' sums."""
    ((sum_of_all, torn),) = pipeline.database.rows(
        "SELECT coalesce(sum(balance), 0), count(*) FILTER (WHERE balance <> given) FROM"
        " (SELECT a.balance, coalesce((SELECT sum(CASE WHEN t.taker = a.id THEN t.amount ELSE -t.amount END)"
        "  FROM transfer t WHERE a.id IN (t.giver, t.taker)), 0) AS given FROM account a) AS accounts"
    )
    assert (sum_of_all, torn) == (0, 0)


def test_dsqls_transactions_reach_the_target_once_whole_and_in_order(pipeline: Pipeline) -> None:
    stream, path = Stream(pipeline, seed=7), properties(pipeline)
    with pipeline.daemon(path) as daemon:
        stream.run(40, each=0.1)
        for child in psutil.Process(daemon.pid).children(recursive=True):
            child.kill()
        stream.run(20, each=0.05)
        pipeline.apply()
        check(pipeline)
    stream.run(20, each=0.02)
    with pipeline.daemon(path):
        eventually(lambda: dispatched(pipeline, stream.units), limit=LIMIT)
    pipeline.apply()
    check(pipeline)
    assert dispatched(pipeline, stream.units)
    accounts = pipeline.database.rows(
        "SELECT id, balance::text, note, extract(epoch FROM seen)::text FROM account ORDER BY id"
    )
    assert accounts == [
        (number, money(cents), note, f"1710510600.{123456 + number}")
        for number, (cents, note) in sorted(stream.bank.accounts.items())
    ]
    transfers = pipeline.database.rows(
        "SELECT id::text, giver, taker, amount::text, day::text, encode(proof, 'hex'), doc::text"
        " FROM transfer ORDER BY id"
    )
    assert transfers == [
        (uuid_of(name), giver, taker, money(amount), "2024-03-15", "00ff", '{"a": [1.5]}')
        for name, (giver, taker, amount) in sorted(stream.bank.transfers.items())
    ]
