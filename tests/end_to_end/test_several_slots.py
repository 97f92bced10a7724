"""Two replication slots in one fleet: an extractor duty for each, numbers of its own for each, and one target.

Each slot has a settings file, with a stream, a log and an apply job of its own (docs/extract.md, *PostgreSQL*). The
fleet's workers are daemons of the first file, and run all the rest as duties, the second file's daemon included. One
worker is killed, with whatever it runs; then each slot's transactions are applied once, under dense numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from kainite.base.errors import FleetError
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_table import LogRow, read_rows
from kainite.replicate.new_file import write_properties
from kainite.settings import ExtractOffsets
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.postgresql_source import drop_slot, source
from support.replica_processes import QUICK_SETTINGS
from support.replicas import run
from support.waiting import eventually

__all__ = ["source"]

TABLES: Final = "CREATE TABLE orders (id int PRIMARY KEY, n int); CREATE TABLE invoices (id int PRIMARY KEY, n int)"
NAMES: Final = ("orders", "invoices")
LIMIT_S: Final = 240.0
_LOG: Final = """
logTableName = {application}-log
logPartition = {name}
targetTables = {name}
"""
_FLEET: Final = """
workerId = {worker}
fleet = true
fleetPingTimeoutMillis = 6000
fleetDutiesFile = duties.toml
"""

_SETTINGS: Final = QUICK_SETTINGS.replace("2000", "6000")
"""Leases outlast the start of ten processes at once, two JVMs among them, on two processors."""


@dataclass
class TwoSlots:
    """Two slots of a source, and the fleet that replicates both.

    Attributes:
        source, target: the databases.
        folder: where the settings files are.
        store: the logs'.
        fleet: the fleet's table.
    """

    source: str
    target: str
    folder: Path
    store: DynamoDBStore
    fleet: DynamoDBFleetStore

    @contextmanager
    def worker(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a worker of the fleet; it ends as a killed one, and its duties end with it."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "kainite", "run", "-p", str(self.folder / f"{name}.properties")],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PATH": path},
            )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def write(self, first: int, count: int) -> None:
        """Commits transactions for each of the slots, in turns."""
        for number in range(first, first + count):
            run(self.source, *(f"INSERT INTO {name} VALUES ({number}, 0)" for name in NAMES))
            run(self.source, *(f"UPDATE {name} SET n = n + 1 WHERE id <= {number}" for name in NAMES))

    def all_run(self) -> bool:
        """Tells whether all duties run."""
        with suppress(FleetError):  # before the first worker has made the table
            duties = self.fleet.read().duties.values()
            return len(duties) == 5 and all(duty.status is DutyStatus.RUNNING for duty in duties)
        return False

    def same(self) -> bool:
        queries = [f"SELECT id, n FROM {name} ORDER BY 1" for name in NAMES]
        return all(run(self.source, query) == run(self.target, query) for query in queries)

    def all_are_committed(self, name: str) -> bool:
        """Tells whether a log has all its units as committed."""
        return {row.status for row in self.rows(name)} <= {UnitStatus.COMMITTED.value}

    def rows(self, name: str) -> list[LogRow]:
        return list(read_rows(self.store, name))


@pytest.fixture
def slots(
    source: SourceSlot, postgres: str, kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> Iterator[TwoSlots]:
    application = unique("slots").replace("-", "_")
    run(source.url, "DROP PUBLICATION changes", "DROP TABLE item, note", TABLES)
    run(postgres, TABLES)
    with ExitStack() as stack:
        for name in NAMES:
            made = SourceSlot(source.url, f"{source.slot}_{name}", name)
            run(source.url, f"CREATE PUBLICATION {name} FOR TABLE {name}")
            stack.callback(_drop, made)
            with create_slot(made) as slot:
                place = Place(Offset(slot.lsn, 0).as_json())
            stream = f"{application}_{name}"
            kinesis.create_stream(StreamName=stream, ShardCount=1)
            file = tmp_path / f"{name}.properties"
            write_properties(file, "postgresql://kainite@source/shop", postgres, stream)
            text = file.read_text()
            words = f"--source {source.url!r} --slot {made.slot} --publication {name}"
            text = text.replace(_options(text), words)
            log = _LOG.format(application=application, name=name)
            file.write_text(text + log + _SETTINGS.format(endpoint=moto_endpoint, cores=1))
            OffsetFile(tmp_path / f"{name}.offset", stream, ExtractOffsets.KAINITE).create(place)
        for worker in ("a", "b"):
            text = (tmp_path / "orders.properties").read_text() + _FLEET.format(worker=worker)
            (tmp_path / f"{worker}.properties").write_text(text)
        (tmp_path / "duties.toml").write_text(_duties())
        yield TwoSlots(
            source.url, postgres, tmp_path, DynamoDBStore(dynamodb, f"{application}-log"),
            DynamoDBFleetStore(dynamodb, f"{application}_orders-Fleet"),
        )  # fmt: skip


def _options(text: str) -> str:
    """Returns the extractor's options in a settings file."""
    (line,) = [line for line in text.splitlines() if line.startswith("extractorName")]
    return line[line.index("--source") :]


def _duties() -> str:
    command = json.dumps([sys.executable, "-m", "kainite", "run", "-p", "invoices.properties"])
    return "".join(
        [
            *(f'[{kind}-{name}]\nkind = "{kind}"\nproperties = "{name}.properties"\n'
              for name in NAMES for kind in ("extract", "apply")),
            f'[run-invoices]\ncommand = {command}\nready = "daemon ready"\n',
        ]
    )  # fmt: skip


def _drop(slot: SourceSlot) -> None:
    with psycopg.connect(slot.url, autocommit=True) as admin:
        drop_slot(admin, slot.slot)


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_two_slots_are_extracted_and_applied_by_one_fleet_of_which_a_worker_dies(slots: TwoSlots) -> None:
    with slots.worker("a") as first, slots.worker("b"):
        slots.write(1, 5)
        eventually(slots.all_run, LIMIT_S)
        eventually(slots.same, LIMIT_S)
        first.kill()
        slots.write(6, 5)
        eventually(slots.same, LIMIT_S)
        for name in NAMES:
            eventually(partial(slots.all_are_committed, name))
            numbers = [row.number for row in slots.rows(name) if row.number is not None]
            assert numbers
            assert numbers[-1] == 20
            assert numbers == list(range(numbers[0], 21))
