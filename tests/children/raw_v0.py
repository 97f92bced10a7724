"""A record processor of the protocol's first form (docs/protocol.md, *The first form*); see the README beside it."""

import json
import sys
from pathlib import Path
from typing import Any


def checkpoint(sequence: str | None) -> None:
    print(json.dumps({"action": "checkpoint", "checkpoint": sequence}), flush=True)
    note("checkpoint", error=json.loads(sys.stdin.readline())["error"])


def note(what: str, **fields: Any) -> None:
    with Path(sys.argv[1]).open("a") as file:
        file.write(json.dumps({"what": what, **fields}) + "\n")


for line in sys.stdin:
    message = json.loads(line)
    match message:
        case {"action": "initialize", "shardId": shard}:
            note("initialize", shard=shard)
        case {"action": "processRecords", "records": records}:
            note(
                "processRecords",
                data=[record["data"] for record in records],
                keys=[record["partitionKey"] for record in records],
            )
            for sequence in ("SHARD_END", records[0]["sequenceNumber"], records[-1]["sequenceNumber"]):
                checkpoint(sequence)
        case {"action": "shutdown", "reason": "ZOMBIE"}:
            note("leaseLost")
        case {"action": "shutdown", "reason": "TERMINATE"}:
            note("shardEnded")
            checkpoint(None)
    print(json.dumps({"action": "status", "responseFor": message["action"]}), flush=True)
