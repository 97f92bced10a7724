"""Serves a Kinesis stream out of memory: records that were rendered beforehand, released at a rate.

``stream.py FOLDER SHARDS RATE`` reads FOLDER/shard-N, in which each line is a unit's number, a space and a record as
GetRecords answers it; it prints its port and serves. Nothing is released before the file FOLDER/go is there, which
holds the time (Unix seconds) of the beginning. Unit N is released N/RATE seconds after that, with rate 0 at once.
"""

from __future__ import annotations

import bisect
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from child_pipe_parts.server import StreamServer


class PacedStream(StreamServer):
    """Serves the records that have been released."""

    def __init__(self, folder: Path, shards: int, rate: float) -> None:
        super().__init__(folder, shards, 0)
        self._rate = rate
        self._units: list[list[int]] = []
        self._rendered: list[list[bytes]] = []
        for shard in range(shards):
            parted = [line.split(b" ", 1) for line in (folder / f"shard-{shard}").read_bytes().splitlines()]
            self._units.append([int(unit) for unit, _ in parted])
            self._rendered.append([record for _, record in parted])
        self._began: float | None = None

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[bytes, Path | None]:
        if operation == "DescribeStreamSummary":
            return json.dumps({"StreamDescriptionSummary": self._summary(request["StreamName"])}).encode(), None
        if operation != "GetRecords":
            return super().answer(operation, request)
        name, _, place = request["ShardIterator"].rpartition(":")
        shard, first = int(name.rpartition("-")[2]), int(place)
        released = self._released(shard)
        end = min(released, first + int(request.get("Limit", 10_000)))
        behind = 0 if end == released else 1000
        head = b'{"NextShardIterator":"%s:%d","MillisBehindLatest":%d,"Records":[' % (name.encode(), end, behind)
        return head + b",".join(self._rendered[shard][first:end]) + b"]}", None

    def _summary(self, name: str) -> dict[str, Any]:
        return {
            "StreamName": name,
            "StreamARN": f"arn:aws:kinesis:us-east-1:000000000000:stream/{name}",
            "StreamStatus": "ACTIVE",
            "StreamCreationTimestamp": 1_763_600_000.0,
            "RetentionPeriodHours": 24,
            "EnhancedMonitoring": [],
            "OpenShardCount": self.shards,
        }

    def _released(self, shard: int) -> int:
        go = self.folder / "go"
        if self._began is None and go.exists():
            self._began = float(go.read_text())
        if self._began is None:
            return 0
        if not self._rate:
            return len(self._units[shard])
        return bisect.bisect_right(self._units[shard], (time.time() - self._began) * self._rate)


def main() -> None:
    folder, shards, rate = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    with PacedStream(folder, shards, rate) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
