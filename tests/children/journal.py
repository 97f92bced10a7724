"""A child that appends what it is given to a file and checkpoints each batch: ``journal.py FILE``.

A line of the file is a JSON array: ``["start", shard, sequence]`` or ``["record", shard, sequence, payload]``. Among
several streams the shard is named as its lease is.
It needs no library, so it runs under any daemon.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

shard = ""


def write(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def note(lines: list[list[Any]]) -> None:
    with Path(sys.argv[1]).open("ab", buffering=0) as journal:
        # One write: several children append to the same file.
        journal.write("".join(json.dumps(line) + "\n" for line in lines).encode())


for text in sys.stdin:
    request = json.loads(text)
    action = request["action"]
    if action == "initialize":
        shard = ":".join(filter(None, (request.get("streamIdentifier"), request["shardId"])))
        note([["start", shard, request["sequenceNumber"]]])
    if action == "processRecords":
        given = request["records"]
        note([["record", shard, r["sequenceNumber"], base64.b64decode(r["data"]).decode()] for r in given])
    if action in ("processRecords", "shardEnded"):
        write({"action": "checkpoint", "sequenceNumber": None, "subSequenceNumber": None})
        sys.stdin.readline()
    write({"action": "status", "responseFor": action})
