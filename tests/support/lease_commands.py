"""A lease table of the test's own, a stream with two shards, and the lease commands on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.cli.main import main
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from support.kinesis_double import KinesisDouble
from support.names import unique

LIMIT = 30.0


@pytest.fixture
def table(dynamodb: Any) -> LeaseTable:
    table = LeaseTable(dynamodb, unique("leases"))
    table.create()
    return table


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble(shards=2)
    yield double
    double.close()


@dataclass
class LeaseCommands:
    properties: Path
    table: LeaseTable
    double: KinesisDouble

    def kainite(self, *arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(main, ["leases", *arguments, "-p", str(self.properties)], input=answer)

    def hold(self, shard: str, checkpoint: Checkpoint = TRIM_HORIZON) -> Lease:
        """Returns the shard's lease, taken by worker ``w``."""
        self.table.put_new(Lease(shard))
        lease = self.table.get(shard)
        assert lease is not None
        taken = self.table.take(lease, "w")
        assert taken is not None
        stored = self.table.checkpoint(taken, checkpoint)
        assert stored is not None
        return stored

    @contextmanager
    def renewing(self, lease: Lease) -> Iterator[None]:
        """Raises the counter again and again, as the lease's worker would."""
        ended = threading.Event()

        def renew() -> None:
            held: Lease | None = lease
            while held is not None and not ended.wait(0.05):
                held = self.table.renew(held)

        thread = threading.Thread(target=renew)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LIMIT)

    def checkpoints(self) -> dict[str, str]:
        return {lease.key: str(lease.checkpoint) for lease in self.table.scan()}


@pytest.fixture
def world(table: LeaseTable, double: KinesisDouble, moto_endpoint: str, tmp_path: Path) -> LeaseCommands:
    properties = tmp_path / "app.properties"
    properties.write_text(
        f"executableName=true\nstreamName=orders\napplicationName={table.name}\nregionName=us-east-1\n"
        f"dynamoDBEndpoint={moto_endpoint}\nkinesisEndpoint={double.endpoint}\nfailoverTimeMillis=1000\n"
    )
    return LeaseCommands(properties, table, double)
