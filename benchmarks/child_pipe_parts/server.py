"""Serves a Kinesis stream from files: GetRecords replies rendered beforehand and sent by ``sendfile``.

``server.py FOLDER SHARDS REPLIES RECORDS BYTES`` renders what FOLDER lacks, prints its port, serves.
Run as a process of its own, so that its work does not count as the daemon's. All shards hold the
same records, and their replies share one set of files; only the iterator at a reply's beginning differs.
"""

from __future__ import annotations

import base64
import json
import random
import socketserver
import sys
from pathlib import Path
from typing import Any

FIRST_SEQUENCE = 49_640_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000
ARRIVED = 1_763_700_000.123


def render(folder: Path, replies: int, records: int, size: int) -> None:
    """Writes the records of each reply, ``"Records":[…]}``, to the missing ones of ``folder/0``, ``folder/1`` …"""
    payloads = [base64.b64encode(random.Random(seed).randbytes(size)).decode() for seed in range(100)]
    for reply in range(replies):
        if (folder / str(reply)).exists():
            continue
        items = [
            {
                "SequenceNumber": str(FIRST_SEQUENCE + reply * records + number),
                "ApproximateArrivalTimestamp": ARRIVED,
                "Data": payloads[number % len(payloads)],
                "PartitionKey": f"customer-{number:08d}",
            }
            for number in range(records)
        ]
        body = json.dumps({"Records": items}, separators=(",", ":"))
        (folder / str(reply)).write_text(body.removeprefix("{"))


class StreamServer(socketserver.ThreadingTCPServer):
    """Serves ``shards`` shards of ``replies`` replies each."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, shards: int, replies: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.shards = shards
        self.replies = replies

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[bytes, Path | None]:
        """Returns the reply's own bytes, and the file to send behind them."""
        match operation:
            case "ListShards":
                return json.dumps({"Shards": [self._shard(number) for number in range(self.shards)]}).encode(), None
            case "GetShardIterator":
                return json.dumps({"ShardIterator": f"{request['ShardId']}:0"}).encode(), None
            case "GetRecords":
                return self._records(request["ShardIterator"])
            case _:
                raise ValueError(f"no such operation here: {operation}")

    def _records(self, iterator: str) -> tuple[bytes, Path | None]:
        shard, _, place = iterator.rpartition(":")
        number = int(place)
        left = self.replies - number
        following = f"{shard}:{min(number + 1, self.replies)}"
        if not left:
            return json.dumps({"NextShardIterator": following, "MillisBehindLatest": 0, "Records": []}).encode(), None
        behind = 1000 * (left - 1)
        return b'{"NextShardIterator":"%s","MillisBehindLatest":%d,' % (following.encode(), behind), (
            self.folder / str(number)
        )

    def _shard(self, number: int) -> dict[str, Any]:
        step = 2**128 // self.shards
        end = 2**128 - 1 if number == self.shards - 1 else (number + 1) * step - 1
        return {
            "ShardId": f"shardId-{number:012d}",
            "HashKeyRange": {"StartingHashKey": str(number * step), "EndingHashKey": str(end)},
            "SequenceNumberRange": {"StartingSequenceNumber": str(FIRST_SEQUENCE)},
        }


class Handler(socketserver.StreamRequestHandler):
    """Speaks the HTTP/1.1 that botocore needs: headers, Content-Length, a connection that stays open."""

    disable_nagle_algorithm = True
    server: StreamServer

    def handle(self) -> None:
        while self.rfile.readline():
            headers: dict[bytes, bytes] = {}
            while (line := self.rfile.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                headers[name.lower()] = value.strip()
            body = json.loads(self.rfile.read(int(headers[b"content-length"])))
            self._reply(*self.server.answer(headers[b"x-amz-target"].decode().rpartition(".")[2], body))

    def _reply(self, own: bytes, path: Path | None) -> None:
        size = path.stat().st_size if path else 0
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: %d\r\n\r\n"
        self.connection.sendall(head % (len(own) + size) + own)
        if path is not None:
            with path.open("rb") as file:
                self.connection.sendfile(file)


def main() -> None:
    folder = Path(sys.argv[1])
    shards, replies, records, size = map(int, sys.argv[2:])
    render(folder, replies, records, size)
    with StreamServer(folder, shards, replies) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
