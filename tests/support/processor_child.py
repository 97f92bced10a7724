"""A record processor as a real child process, driven line by line as a daemon does."""

from __future__ import annotations

import base64
import json
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

PROCESSORS = Path(__file__).parents[2] / "record_processors"
"""The folder of the record processors' pages and samples."""
LIMIT = 20.0


def command_of(processor: str) -> list[str]:
    """Returns the command of a record processor, such as ``debezium``."""
    return [sys.executable, "-m", f"kainite_processors.{processor}"]


class Child:
    """The child and its supervisor: one request at a time, everything it says until its status.

    Args:
        processor: the record processor, such as ``debezium``.
        arguments: its options.
        blanks: whether requests have blanks between their fields, as no daemon writes them.
    """

    def __init__(self, processor: str, *arguments: str, blanks: bool = False) -> None:
        self._separators = (", ", ": ") if blanks else (",", ":")
        command = [*command_of(processor), *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.checkpoints: list[dict[str, Any]] = []
        self.refusals: list[str] = []

    def send(self, **request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request, separators=self._separators).encode() + b"\n")

    def ask(self, **request: Any) -> list[dict[str, Any]]:
        """Sends a request and answers checkpoints; returns every other line that comes before the status."""
        self.send(**request)
        said = []
        while (line := self.read_line()) != {"action": "status", "responseFor": request["action"]}:
            if line["action"] == "checkpoint":
                self.checkpoints.append(line)
                self.send(**line, error=self.refusals.pop(0) if self.refusals else None)
            else:
                said.append(line)
        return said

    def initialize(self, shard: str = "shardId-0") -> None:
        self.ask(action="initialize", shardId=shard, sequenceNumber="TRIM_HORIZON", subSequenceNumber=0)

    def records(self, *bodies: Any) -> list[dict[str, Any]]:
        """Delivers records with partition key ``k``; returns the objects that came on ``emit`` lines."""
        return self.keyed(*(("k", body) for body in bodies))

    def keyed(self, *records: tuple[str, Any]) -> list[dict[str, Any]]:
        """Delivers records, each with its partition key: bytes as they are, all else as JSON."""
        rendered = [
            {
                "action": "record",
                "data": base64.b64encode(body if isinstance(body, bytes) else json.dumps(body).encode()).decode(),
                "partitionKey": key,
                "sequenceNumber": str(place),
                "subSequenceNumber": 0,
                "approximateArrivalTimestamp": 1_795_255_365_867,
            }
            for place, (key, body) in enumerate(records)
        ]
        said = self.ask(action="processRecords", records=rendered, millisBehindLatest=0)
        assert all(line["action"] == "emit" and len(line["deltas"]) <= 1000 for line in said)
        return [delta for line in said for delta in line["deltas"]]

    def read_line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            assert select.select([self.process.stdout], [], [], LIMIT)[0], "the child says nothing"
            line = self.process.stdout.readline()
            if not line:
                raise EOFError(self.process.communicate()[1].decode())
            if line.strip():
                return dict(json.loads(line))

    def close(self) -> None:
        with self.process:
            self.process.kill()
