"""An application that ``kainite doctor`` finds in order, and of which a test breaks one thing."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kainite.doctor.asking import checks_for
from kainite.doctor.finding import DoctorFinding, FindingState
from kainite.doctor.running import run_checks
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import Settings, examine
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique

LIMIT_S = 60.0


@dataclass
class DoctoredFile:
    """The application.

    Attributes:
        endpoint: AWS's.
        dynamodb, kinesis: clients of the test's own.
        folder: where its files are.
        name: of the application and of its stream.
    """

    endpoint: str
    dynamodb: Any
    kinesis: Any
    folder: Path
    name: str = field(default_factory=lambda: unique("app"))

    @property
    def path(self) -> Path:
        return self.folder / "app.properties"

    def make(self, **other: str) -> None:
        """Makes stream, tables and target, and writes the file; ``other`` replaces settings."""
        self.kinesis.create_stream(StreamName=self.name, ShardCount=2)
        self.kinesis.increase_stream_retention_period(StreamName=self.name, RetentionPeriodHours=168)
        LeaseTable(self.dynamodb, self.name).create()
        DynamoDBStore(self.dynamodb, f"{self.name}-log").create()
        DynamoDBFleetStore(self.dynamodb, f"{self.name}-Fleet").create()
        with closing(sqlite3.connect(self.folder / "target.db")) as target:
            target.execute("CREATE TABLE items (id integer PRIMARY KEY, v text NOT NULL)")
        self.write(**other)

    def write(self, **other: str) -> None:
        """Writes the file."""
        settings = {
            "applicationName": self.name,
            "streamName": self.name,
            "regionName": "us-east-1",
            "executableName": f"{sys.executable} -c pass",
            "kinesisEndpoint": self.endpoint,
            "dynamoDBEndpoint": self.endpoint,
            "unitsOfWork": "true",
            "fleet": "true",
            "target": f"sqlite:///{self.folder}/target.db",
        } | other
        self.path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items() if value))
        self.path.chmod(0o600)

    def settings(self) -> Settings:
        return examine(self.path, needs=()).settings_or_raise()

    def asked(self, roles: Sequence[str] = ()) -> tuple[DoctorFinding, ...]:
        """Returns what all checks of the file find."""
        return run_checks(checks_for(examine(self.path, needs=()), roles), LIMIT_S)

    def bad(self, roles: Sequence[str] = ()) -> list[DoctorFinding]:
        """Returns what is not well."""
        return [finding for finding in self.asked(roles) if finding.state is not FindingState.WELL]
