"""Debezium's own engine on a PostgreSQL database, as a process: ``tests/children/debezium_server.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from support.debezium_sink import BATCH_SIZE, Sending
from support.waiting import eventually

LIBRARY: Final = Path(sys.prefix) / "debezium"
PROGRAM: Final = Path(__file__).parents[1] / "children" / "debezium_server.py"
START_LIMIT_S: Final = 300.0

# As the processor's page says; and what a test has no time for.
SETTINGS: Final = {
    "name": "shop",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "topic.prefix": "shop",
    "schema.include.list": "public",
    "publication.autocreate.mode": "all_tables",
    "database.hostname": "127.0.0.1",
    "database.password": "any",
    "database.sslmode": "disable",
    "snapshot.mode": "no_data",
    "provide.transaction.metadata": "true",
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": ".*",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "true",
    "value.converter.replace.null.with.default": "false",
    "interval.handling.mode": "string",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "offset.flush.interval.ms": "1000",
    "poll.interval.ms": "50",
}


@dataclass(frozen=True)
class DebeziumServer:
    """One connector: its offsets last from one start to the next, as does its slot.

    Attributes:
        url: the database; its server listens on the loopback interface.
        kinesis: Kinesis's endpoint.
        stream: where all events go.
        folder: for its files.
        sending, batch_size, refused: what the sink does, and Kinesis.
        engine: more of Debezium's settings.
    """

    url: str
    kinesis: str
    stream: str
    folder: Path
    sending: Sending = Sending.BATCHES
    batch_size: int = BATCH_SIZE
    refused: float = 0.0
    engine: Mapping[str, str] = field(default_factory=dict)

    @property
    def slot(self) -> str:
        return self.stream.replace("-", "_")

    def lost(self) -> list[Any]:
        """Returns the events that never got onto the stream; of BEGIN and END too, tombstones aside."""
        lines = (self.folder / "lost").read_bytes().splitlines()
        return [json.loads(line)["payload"] for line in lines if line]

    @contextmanager
    def running(self, seed: int = 0) -> Iterator[subprocess.Popen[bytes]]:
        """Runs the engine until the block's end, which kills it; gives it when it streams.

        Args:
            seed: which records Kinesis refuses.
        """
        given = self.folder / "debezium.json"
        given.write_text(json.dumps(self._given(seed)))
        with (self.folder / "debezium.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(PROGRAM), str(given)], stdout=log, stderr=log, cwd=self.folder
            )
        try:
            eventually(lambda: self._streams(process), limit=START_LIMIT_S)
            yield process
        finally:
            process.kill()
            process.wait()
            eventually(lambda: not self._slot_is_held())

    def _given(self, seed: int) -> dict[str, Any]:
        assert LIBRARY.exists(), "Debezium's engine is missing: make test-debezium"
        database = conninfo_to_dict(self.url)
        own = {
            "database.port": str(database["port"]),
            "database.user": str(database["user"]),
            "database.dbname": str(database["dbname"]),
            "slot.name": self.slot,
            "publication.name": self.slot,
            "transforms.route.replacement": self.stream,
            "offset.storage.file.filename": str(self.folder / "offsets"),
        }
        return {
            "engine": {**SETTINGS, **own, **self.engine},
            "library": str(LIBRARY), "endpoint": self.kinesis, "sending": self.sending.value,
            "batch_size": self.batch_size, "refused": self.refused, "seed": seed, "lost": str(self.folder / "lost"),
        }  # fmt: skip

    def _streams(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, (self.folder / "debezium.log").read_text()[-2000:]
        return self._slot_is_held()

    def _slot_is_held(self) -> bool:
        with psycopg.connect(self.url) as server:
            found = server.execute("SELECT active FROM pg_replication_slots WHERE slot_name = %s", [self.slot])
            return found.fetchone() == (True,)
