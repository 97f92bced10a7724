"""SIGKILL of each process of a replica of MariaDB, at each step of ``reload`` and ``add``.

The processes are those that a user runs (:mod:`support.replica_processes`). A command that did not end well is started
again until it has. Then both sides are compared row by row, the log has each unit once and committed, and each state of
the target that was seen meanwhile is one that the source had.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kainite.capture.mysql.extractor import BinlogReading
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.new_file import write_properties
from kainite.settings import ExtractOffsets
from kainite.store.dynamodb import DynamoDBStore
from support.binlog_loading import BinlogLoading
from support.live_binlog import FILL, TABLES, BinlogTraffic
from support.live_replica import DRIFT
from support.mariadb_source import execute, source_database
from support.names import unique
from support.replica_processes import QUICK_SETTINGS, Gate, ReplicaProcesses, Victim, replica_processes
from support.replicas import run

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.long]

_TRIES: Final = 5


class BinlogProcesses(ReplicaProcesses):
    """The processes of a replica of MariaDB, whose two sides the test compares."""

    def compare(self) -> None:
        self.until(lambda: self.world.differences() == {})


@contextmanager
def replica(
    server: str, target: str, dynamodb: Any, kinesis: Any, endpoint: str, folder: Path
) -> Iterator[ReplicaProcesses]:
    """Gives the processes of a replica that follows its source."""
    name = unique("s").replace("-", "_")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    file = folder / "shop.properties"
    with source_database(server) as source:
        execute(source, *TABLES, *FILL)
        run(target, *TABLES)
        write_properties(file, source, target, name)
        file.write_text(file.read_text() + QUICK_SETTINGS.format(endpoint=endpoint, cores=2))
        offsets = OffsetFile(folder / "shop.offset", name, ExtractOffsets.KAINITE)
        world: Any = BinlogLoading(BinlogEnds(BinlogReading(source), target, f"{name}-log/0", offsets))
        store = DynamoDBStore(dynamodb, f"{name}-log")
        with replica_processes(world, file, store, BinlogProcesses, BinlogTraffic(source)) as made:
            made.begin("SELECT 1")
            made.done("replicate", "load")
            yield made
    kinesis.delete_stream(StreamName=name)


GATES: Final = (Gate.BEGUN, Gate.PLANNED, Gate.COPIED, Gate.CATCHING_UP, Gate.LIVE, Gate.FOREIGN_KEY)
VICTIMS: Final = (Victim.COMMAND, Victim.EXTRACTOR, Victim.DAEMON, Victim.APPLY)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("what", ["reload", "add"])
def test_everybody_is_killed_at_every_step(
    mariadb_source_server: str, postgres: str, dynamodb: Any, kinesis: Any, moto_endpoint: str, tmp_path: Path,
    what: str,
) -> None:  # fmt: skip
    with replica(mariadb_source_server, postgres, dynamodb, kinesis, moto_endpoint, tmp_path) as made:
        for number, (gate, victim) in enumerate(itertools.product(GATES, VICTIMS)):
            table = spoilt(made, what, number)
            made.traffic.go(3)
            well = made.strike(("replicate", what, table), gate, (victim,))
            for _ in range(_TRIES):
                if well:
                    break
                well = made.attempt("replicate", what, table)[0] == 0
            assert well, f"{what} {table} did not end well {_TRIES} times in a row: {gate}, {victim}"
            made.traffic.go(3)
            made.settle()


def spoilt(made: ReplicaProcesses, what: str, number: int) -> str:
    """Lets the target drift, or makes a table on both sides; returns the table."""
    if what == "reload":
        made.world.in_target(DRIFT)
        return "account"
    table = f"more_{number}"
    make = f"CREATE TABLE {table} (id INT PRIMARY KEY, above INT REFERENCES account (id))"
    made.world.in_target(make)
    made.world.in_source(make, f"INSERT INTO {table} SELECT seq, seq FROM seq_1_to_200")
    return table
